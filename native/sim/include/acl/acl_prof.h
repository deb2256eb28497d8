/* AscendCL's profiling functions: live subscription of a model's operators, collection into files, stamps and steps.
 *
 * Any thread may call any of them. All lengths are in bytes. Functions that answer aclError answer 0 for success. A process is in one mode
 * at a time: off, collecting (aclprofInit to aclprofFinalize), subscribed (while a model is), or under the command line
 * (OPSTREAM_SIM_COMMAND_LINE=1). A call that the mode forbids answers 100042 (command line), 148047 (the other API has it) or, for
 * aclprofInit alone, 100002 (already collecting); this is checked before the arguments are.
 *
 * A process that calls any of these functions before its first aclInit loses the getters, Stop, Finalize and SetConfig until it ends: they
 * answer 0 and do nothing. */
#ifndef OPSTREAM_SIM_ACL_PROF_H
#define OPSTREAM_SIM_ACL_PROF_H

#include "acl/acl_base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
    ACL_AICORE_ARITHMETIC_UTILIZATION = 0,
    ACL_AICORE_PIPE_UTILIZATION = 1,
    ACL_AICORE_MEMORY_BANDWIDTH = 2,
    ACL_AICORE_L0B_AND_WIDTH = 3,
    ACL_AICORE_RESOURCE_CONFLICT_RATIO = 4,
    ACL_AICORE_MEMORY_UB = 5,
    ACL_AICORE_L2_CACHE = 6,
    ACL_AICORE_PIPE_EXECUTE_UTILIZATION = 7,
    ACL_AICORE_MEMORY_ACCESS = 8,
    ACL_AICORE_NONE = 0xFF, /* the only one for a subscription */
} aclprofAicoreMetrics;

/* What aclprofCreateConfig's dataTypes is made of. */
#define ACL_PROF_ACL_API 0x0001ULL
#define ACL_PROF_TASK_TIME 0x0002ULL
#define ACL_PROF_AICORE_METRICS 0x0004ULL
#define ACL_PROF_AICPU 0x0008ULL
#define ACL_PROF_L2CACHE 0x0010ULL
#define ACL_PROF_HCCL_TRACE 0x0020ULL
#define ACL_PROF_TRAINING_TRACE 0x0040ULL
#define ACL_PROF_MSPROFTX 0x0080ULL
#define ACL_PROF_RUNTIME_API 0x0100ULL
#define ACL_PROF_TASK_TIME_L0 0x0800ULL
#define ACL_PROF_TASK_MEMORY 0x1000ULL
#define ACL_PROF_OP_ATTR 0x4000ULL

typedef enum { ACL_STEP_START = 0, ACL_STEP_END = 1 } aclprofStepTag;
typedef enum { ACL_SUBSCRIBE_ATTRI_NONE = -1, ACL_SUBSCRIBE_ATTRI_THREADID = 0, ACL_SUBSCRIBE_ATTRI_MAX } aclprofSubscribeOpAttri;
typedef enum {
    ACL_SUBSCRIBE_OP = 0,
    ACL_SUBSCRIBE_SUBGRAPH = 1,
    ACL_SUBSCRIBE_OP_THREAD = 2,
    ACL_SUBSCRIBE_NONE = 0xFF,
} aclprofSubscribeOpFlag;

typedef struct aclprofSubscribeConfig aclprofSubscribeConfig;
typedef struct aclprofConfig aclprofConfig;
typedef struct aclprofStepInfo aclprofStepInfo;
typedef struct aclprofAicoreEvents aclprofAicoreEvents;

#pragma GCC visibility push(default)

/* ---- Subscription ---- */

/* `fd` points to an int, the pipe's write end. The int is read at every record, set to -1 and its descriptor closed when the last device
 * unsubscribes: it must live as long. Whether the descriptor is good isn't checked. NULL when `fd` is NULL or memory is short. */
aclprofSubscribeConfig *aclprofCreateSubscribeConfig(int8_t timeInfoSwitch, aclprofAicoreMetrics metrics, void *fd);
/* The configuration may be destroyed while subscribed; the int may not. */
aclError aclprofDestroySubscribeConfig(const aclprofSubscribeConfig *config);
/* From now on every operator of the model is a record in the pipe, written by the device's thread, one write each. All models of a
 * device share the fd that the first of them brought. 100000: no configuration, or one that asks for nothing or for metrics; 100011: no
 * such model is loaded; 148046: subscribed already; 100010: another configuration is in force (and, if the model is on a device that isn't
 * subscribed yet, the model stays half subscribed: no records come, but it must be unsubscribed). */
aclError aclprofModelSubscribe(uint32_t modelId, const aclprofSubscribeConfig *config);
/* Returns when every record that was made has been written: never, when nobody reads. 100011: not subscribed, or unloaded already, or
 * on a device that went off and on again while another stayed on; then nothing changes. */
aclError aclprofModelUnSubscribe(uint32_t modelId);

/* The getters read `info`, which holds `len` bytes of records as they came from the pipe. All but GetOpFlag first verify every record in
 * it: one corrupt record, a length that is no multiple of the record's, or an index beyond the last record, and they answer 100000 (times:
 * 0; the model id: 100000 too). An index of millions crashes. */
aclError aclprofGetOpDescSize(size_t *size);
aclError aclprofGetOpNum(const void *info, size_t len, uint32_t *number);
/* Lengths count the final NUL. */
aclError aclprofGetOpTypeLen(const void *info, size_t len, uint32_t index, size_t *length);
aclError aclprofGetOpNameLen(const void *info, size_t len, uint32_t index, size_t *length);
/* Each string can be had once: the call that succeeds frees it, later ones answer 100000. `text` must be zero before: only its last byte is
 * set to NUL. Too short a buffer answers 100000, one just without room for the NUL loses the last character. */
aclError aclprofGetOpType(const void *info, size_t len, uint32_t index, char *text, size_t textLen);
aclError aclprofGetOpName(const void *info, size_t len, uint32_t index, char *text, size_t textLen);
uint64_t aclprofGetOpStart(const void *info, size_t len, uint32_t index);
uint64_t aclprofGetOpEnd(const void *info, size_t len, uint32_t index);
uint64_t aclprofGetOpDuration(const void *info, size_t len, uint32_t index);
size_t aclprofGetModelId(const void *info, size_t len, uint32_t index);
aclprofSubscribeOpFlag aclprofGetOpFlag(const void *info, size_t len, uint32_t index);
/* Always NULL, as in the version measured. */
const char *aclprofGetOpAttriValue(const void *info, size_t len, uint32_t index, aclprofSubscribeOpAttri attribute);

/* ---- Collection: the calls check and answer as AscendCL does, the simulator writes no result ---- */

/* `path` has 1 to 4,095 bytes of letters, digits and "/._-+:~" (else 100003), and `length` is its length (else 100000). */
aclError aclprofInit(const char *path, size_t length);
aclError aclprofFinalize(void);
/* `config` has 1 to 256 bytes; types are 1 (storage limit, "100MB" and so on) to 10; 100010: a value that the type doesn't take. */
aclError aclprofSetConfig(int type, const char *config, size_t length);
/* NULL for devices that don't exist or are named twice, for unknown metrics and for events that aren't NULL. */
aclprofConfig *aclprofCreateConfig(uint32_t *deviceIds, uint32_t deviceNums, aclprofAicoreMetrics metrics,
                                   const aclprofAicoreEvents *events, uint64_t dataTypes);
aclError aclprofDestroyConfig(const aclprofConfig *config);
/* 200007: data types that don't exist. After a Start that failed, or an aclprofFinalize without Stop, Start does nothing until Stop is
 * called. Stop wants the data types of Start (else 100010). Outside aclprofInit to aclprofFinalize both do nothing. */
aclError aclprofStart(const aclprofConfig *config);
aclError aclprofStop(const aclprofConfig *config);

/* ---- Stamps: between Start with ACL_PROF_MSPROFTX and Stop only; outside, aclprofCreateStamp answers NULL ---- */

/* At most 100 live at a time; one that isn't destroyed before aclprofFinalize is lost for the process. */
void *aclprofCreateStamp(void);
void aclprofDestroyStamp(void *stamp);
/* At most 126 bytes. Errors of stamps are -1, but 100000 for Push and RangeStart of NULL. */
aclError aclprofSetStampTraceMessage(void *stamp, const char *message, uint32_t length);
aclError aclprofMark(void *stamp);
/* One stack for the whole process. */
aclError aclprofPush(void *stamp);
aclError aclprofPop(void);
/* A range's id is its stamp's slot, 0 to 99; stopping it twice succeeds. */
aclError aclprofRangeStart(void *stamp, uint32_t *rangeId);
aclError aclprofRangeStop(uint32_t rangeId);
aclError aclprofMarkEx(const char *message, size_t length, aclrtStream stream);

/* ---- Steps: in any mode ---- */

aclprofStepInfo *aclprofCreateStepInfo(void);
void aclprofDestroyStepInfo(aclprofStepInfo *stepInfo);
/* 100000: NULL, an unknown tag, or one that this step has had. */
aclError aclprofGetStepTimestamp(aclprofStepInfo *stepInfo, aclprofStepTag tag, aclrtStream stream);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
