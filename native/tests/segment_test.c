/* The writing side: what a fresh segment is, and what the control thread writes. */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "check.h"
#include "segment.h"

static struct segment_writer new_segment(void) {
    struct segment_identity identity = {.kind = OPSTREAM_KIND_AGENT, .app = "app"};
    struct segment_writer writer;
    CHECK_EQ_INT(segment_create(&identity, 64, &writer), 0);
    return writer;
}

static void check_refusals(void) {
    struct segment_identity identity = {.kind = OPSTREAM_KIND_AGENT};
    struct segment_writer writer;
    CHECK_EQ_INT(segment_create(&identity, 63, &writer), OPSTREAM_E_INVALID);
    CHECK_EQ_INT(segment_create(&identity, SERIES_CAPACITY_MAX + 1, &writer), OPSTREAM_E_INVALID);
}

/* The largest one is within the daemon's limit of 64 MiB. */
static void check_largest(void) {
    struct segment_identity identity = {.kind = OPSTREAM_KIND_AGENT};
    struct segment_writer writer;
    CHECK_EQ_INT(segment_create(&identity, SERIES_CAPACITY_MAX, &writer), 0);
    CHECK(writer.bytes <= 64u << 20);
    segment_free(&writer);
}

static void check_descriptor(void) {
    struct segment_writer writer = new_segment();
    struct stat status;
    CHECK_EQ_INT(fstat(writer.fd, &status), 0);
    CHECK_EQ_U64(status.st_size, writer.bytes);
    CHECK(fcntl(writer.fd, F_GETFD) & FD_CLOEXEC);
    CHECK(writer.fd >= 64);
    int seals = fcntl(writer.fd, F_GET_SEALS);
    CHECK((seals & (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)) == (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL));
    CHECK(ftruncate(writer.fd, 0) != 0);
    CHECK(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, writer.fd, 0) == MAP_FAILED);
    /* Far less is allocated than the tables could hold. */
    CHECK((uint64_t)status.st_blocks * 512 < writer.bytes / 4);
    segment_free(&writer);
}

/* The application has a file of its own under the number: nothing is allocated in it, and it stays open. */
static void check_number_of_somebody_else(void) {
    struct segment_writer writer = new_segment();
    char path[] = "/tmp/opstream-segment-XXXXXX";
    struct stat status;
    int file = mkstemp(path);
    CHECK(file >= 0 && unlink(path) == 0);
    CHECK_EQ_INT(segment_descriptor(&writer), writer.fd);
    CHECK(dup2(file, writer.fd) == writer.fd);
    CHECK_EQ_INT(segment_descriptor(&writer), -1);
    CHECK(!segment_have_model(&writer, MODELS_CAPACITY - 1));
    CHECK(!segment_have_series(&writer, 0));
    CHECK(!segment_have_strings(&writer, 1));
    CHECK_EQ_U64(segment_model_row(&writer, 1, 0, "resnet"), 0);
    int number = writer.fd;
    segment_free(&writer);
    CHECK(fstat(number, &status) == 0);
    CHECK_EQ_INT(status.st_size, 0);
    close(number);
    close(file);
}

static void check_two_differ(void) {
    struct segment_writer a = new_segment(), b = new_segment();
    CHECK(memcmp(a.base->header.identity.uuid, b.base->header.identity.uuid, 16) != 0);
    segment_free(&a);
    segment_free(&b);
}

/* A child of fork doesn't have the mapping at all. */
static void check_fork(void) {
    struct segment_writer writer = new_segment();
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        unsigned char resident;
        _exit(mincore(writer.base, 1, &resident) == 0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK_EQ_INT(status, 0);
    segment_free(&writer);
}

static void check_model_rows(void) {
    struct segment_writer writer = new_segment();
    CHECK_EQ_STR(writer.models[0].name, "(other)");
    CHECK_EQ_U64(segment_model_row(&writer, 5, 0, "resnet"), 1);
    segment_model_set_state(&writer, 1, MODEL_SUBSCRIBED, 1000);
    /* Another instance of the same model has a row of its own while the first is subscribed, or may be again. */
    CHECK_EQ_U64(segment_model_row(&writer, 6, 0, "resnet"), 2);
    segment_model_set_state(&writer, 1, MODEL_PAUSED, 1500);
    segment_model_set_state(&writer, 2, MODEL_SUBSCRIBED, 1500);
    CHECK_EQ_U64(segment_model_row(&writer, 7, 1, "resnet"), 3);
    segment_model_set_state(&writer, 1, MODEL_UNSUBSCRIBED, 2000);
    CHECK_EQ_U64(segment_model_row(&writer, 8, 0, "resnet"), 1);
    CHECK_EQ_U64(atomic_load(&writer.models[1].model_id), 8);
    CHECK_EQ_U64(writer.models[3].device, 1);
    for (uint32_t row = 4; row < MODELS_CAPACITY; row++) {
        char name[16];
        snprintf(name, sizeof(name), "m%u", row);
        CHECK_EQ_U64(segment_model_row(&writer, row, 0, name), row);
    }
    CHECK_EQ_U64(segment_model_row(&writer, 99, 0, "one too many"), 0);
    CHECK_EQ_U64(cell_get(&writer.base->used[TABLE_MODELS - 1].rows), MODELS_CAPACITY);
    segment_free(&writer);
}

static void check_long_name(void) {
    struct segment_writer writer = new_segment();
    char name[400];
    memset(name, 'a', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    memcpy(name + 254, "\xc3\xa9", 2); /* would be cut in two at 255 bytes */
    CHECK_EQ_U64(segment_model_row(&writer, 1, 0, name), 1);
    CHECK_EQ_U64(strlen(writer.models[1].name), 254);
    segment_free(&writer);
}

static void check_subscribed_time(void) {
    struct segment_writer writer = new_segment();
    struct segment_model *model = &writer.models[segment_model_row(&writer, 1, 0, "m")];
    segment_model_set_state(&writer, 1, MODEL_SUBSCRIBED, 1000);
    CHECK_EQ_U64(cell_get(&model->subscribed), SUBSCRIBED_RUNNING | 1000);
    segment_model_set_state(&writer, 1, MODEL_PAUSED, 1400);
    CHECK_EQ_U64(cell_get(&model->subscribed), 400);
    segment_model_set_state(&writer, 1, MODEL_SUBSCRIBED, 5000);
    segment_model_set_state(&writer, 1, MODEL_SUBSCRIBED, 5100);
    segment_model_set_state(&writer, 1, MODEL_UNSUBSCRIBED, 5600);
    CHECK_EQ_U64(cell_get(&model->subscribed), 1000);
    CHECK_EQ_U64(cell_get(&model->subscriptions), 2);
    segment_free(&writer);
}

static void check_errors(void) {
    struct segment_writer writer = new_segment();
    for (int code = 1; code <= 20; code++) {
        segment_count_error(&writer, -code);
        segment_count_error(&writer, -code);
    }
    const struct segment_error *errors = writer.base->errors;
    CHECK_EQ_INT((int32_t)cell_get(&errors[0].acl_error), -1);
    CHECK_EQ_U64(cell_get(&errors[14].count), 2);
    CHECK_EQ_U64(cell_get(&errors[15].acl_error), ERROR_OTHER);
    CHECK_EQ_U64(cell_get(&errors[15].count), 10);
    segment_free(&writer);
}

static void check_commit(void) {
    struct segment_writer writer = new_segment();
    struct segment_counters *counters = &writer.base->counters;
    cell_add(&counters->live.records_read, 10);
    cell_add(&counters->live.records_recorded, 6);
    cell_add(&counters->live.records_corrupt, 1);
    segment_commit(&writer, 3);
    CHECK_EQ_U64(cell_get(&counters->sequence), 2);
    CHECK_EQ_U64(cell_get(&counters->committed.records_read), 7);
    CHECK_EQ_U64(cell_get(&counters->committed.records_recorded), 6);
    CHECK_EQ_U64(cell_get(&counters->committed.records_corrupt), 1);
    segment_free(&writer);
}

int main(void) {
    check_refusals();
    check_largest();
    check_descriptor();
    check_number_of_somebody_else();
    check_two_differ();
    check_fork();
    check_model_rows();
    check_long_name();
    check_subscribed_time();
    check_errors();
    check_commit();
    return 0;
}
