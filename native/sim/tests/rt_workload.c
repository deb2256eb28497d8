/* Model files: what is read from them, and what is said of malformed ones. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "acl/acl.h"
#include "expect.h"
#include "records.h"

#define HEADER "Name,Type,Start Time(us),Duration(us)\n"
#define FIRST_LINE "opstream-workload 1\n"

/* The three built-in models' operators and types, and the bytes of their first input and output. */
static const struct {
    const char *name;
    size_t operators;
    size_t input_bytes;
    size_t output_bytes;
} builtins[] = {
    {"resnet50", 74, 602112, 4000},
    {"bert-base", 229, 1024, 393216},
    {"llm-decode", 495, 8, 607744},
};

static const struct {
    const char *text;
    const char *listing;
} good[] = {
    /* kernel_details: 16 digits and 3 decimals are more than a double holds; a tab after the number; operators come in the order of ends */
    {"Step Id,Name,Type,Start Time(us),Duration(us),Input Shapes\n"
     "13,second,Conv2D,1764246877073569.641\t,4.25,\"\"\"32,3,224,224;64\"\"\"\n"
     "13,first,TransData,1764246877073569.640\t,3.002,\"\"\"32,3\"\"\"\n",
     "0 3002 TransData first\n1 4250 Conv2D second\n4251 na keypoint_op\n"},
    /* op_summary: below a nanosecond the duration is cut off, not rounded */
    {"Op Name,OP Type,Task Type,Start Time(us),Task Duration(us),Task Wait Time(us)\n"
     "a,Cast,AI_CORE,1695115378713661,5.7989,0\n"
     "b,Add,AI_CORE,1695115378713661.0019,0.0009,0\n",
     "1 0 Add b\n0 5798 Cast a\n5798 na keypoint_op\n"},
    /* communication: N/A in all columns but the needed ones */
    {"Model ID,Task ID,Name,Type,Accelerator Core,Start Time(us),Duration(us),Context ID\r\n"
     "4294967295,N/A,hcom_broadcast__445_0,hcom_broadcast_,HCCL,1.5,2,N/A\r\n",
     "0 2000 hcom_broadcast_ hcom_broadcast__445_0\n2000 na keypoint_op\n"},
    /* quotes, a comma and a line's end in a name; an empty line; a row without its last columns; no line's end at the end */
    {"Duration(us),Start Time(us),Type,Name,Block Dim,Shapes\n"
     "1,0,\"T\",\"a \"\"b\"\", c\",8,\"x\ny\"\n\n"
     "\"2\",0,T,plain\"quote",
     "0 1000 T a \"b\", c\n0 2000 T plain\"quote\n2000 na keypoint_op\n"},
    {"\xef\xbb\xbf" HEADER "a,T,7,1\n", "0 1000 T a\n1000 na keypoint_op\n"},
    {FIRST_LINE "# a comment\n\ninput\tdata\t12\noutput\tprob\t4\nop\t500\t250\tMat Mul\tx/y z\nop\t600\t50\tAdd\tq\n",
     "100 50 Add q\n0 250 Mat Mul x/y z\n250 na keypoint_op\n"},
    {"opstream-workload 1\r\nop\t0\t1\tT\tn\r\nop\t0\t2\tT\tm", "0 1 T n\n0 2 T m\n2 na keypoint_op\n"},
};

static const struct {
    const char *text;
    const char *complaint;
} bad[] = {
    {"", ": is empty"},
    {HEADER, ": has no operators"},
    {FIRST_LINE, ": has no operators"},
    {"garbage", ":1:1: no column \"Name\" or \"Op Name\", and no first line \"opstream-workload 1\" either"},
    {"Name,Type,Duration(us)\na,b,1\n",
     ":1:1: no column \"Start Time(us)\" or \"Task Start Time(us)\", and no first line \"opstream-workload 1\" either"},
    {"Op Name,OP Type,Start Time(us)\n",
     ":1:1: no column \"Duration(us)\" or \"Task Duration(us)\", and no first line \"opstream-workload 1\" either"},
    {HEADER "a,T,1,1\na,T,-1.5,1\n", ":3:5: Start Time(us): \"-1.5\" is negative"},
    {HEADER "a,T,1,\n", ":2:7: Duration(us): \"\" is empty"},
    {HEADER "a,T,N/A,1\n", ":2:5: Start Time(us): \"N/A\" is not a number"},
    {HEADER "a,T,1e3,1\n", ":2:5: Start Time(us): \"1e3\" is not a number"},
    {HEADER "a,T,1.2.3,1\n", ":2:5: Start Time(us): \"1.2.3\" is not a number"},
    {HEADER "a,T,.,1\n", ":2:5: Start Time(us): \".\" is not a number"},
    {HEADER "a,T,1,99999999999999999\n", ":2:7: Duration(us): \"99999999999999999\" is too large"},
    {HEADER "a,T,1,9999999999999\n", ": operator \"a\" makes an execution longer than 10^15 ns"},
    {"Op Name,OP Type,Start Time(us),Task Duration(us)\na,T,1,x\n", ":2:7: Task Duration(us): \"x\" is not a number"},
    {HEADER "a,T,1,1\n,T,1,1\n", ":3:1: Name: is empty"},
    {HEADER "a,\"\",1,1\n", ":2:4: Type: is empty"},
    {HEADER "a,T,1\n", ":2:1: Duration(us): is missing from this row of 3 fields"},
    {HEADER "a,T,1,1,1\n", ":2:1: 5 fields, but the header has 4"},
    {HEADER "a,T,1,1\n\"b,T,1,1\n", ":3:1: a quote that is never closed"},
    {HEADER "a,T,1,1\n\"b\"c,T,1,1\n", ":3:4: text after a closing quote"},
    {"opstream-workload 2\n", ":1:1: the first line is not \"opstream-workload 1\""},
    {FIRST_LINE "op\t1\t2\tT\n", ":2:1: 4 fields, but \"op START_NS DURATION_NS TYPE NAME\" (single tabs between) has 5"},
    {FIRST_LINE "op\t1\t2\tT\tn\tm\n", ":2:1: 6 fields, but \"op START_NS DURATION_NS TYPE NAME\" (single tabs between) has 5"},
    {FIRST_LINE "op 1 2 T n\n", ":2:1: line: \"op 1 2 T n\" is none of op, input and output"},
    {FIRST_LINE "op\t-1\t2\tT\tn\n", ":2:4: start: \"-1\" is negative"},
    {FIRST_LINE "op\t1\t2.5\tT\tn\n", ":2:6: duration: \"2.5\" is not a whole number"},
    {FIRST_LINE "op\t1\t99999999999999999999\tT\tn\n", ":2:6: duration: \"99999999999999999999\" is too large"},
    {FIRST_LINE "op\t1\t2\t\tn\n", ":2:8: type: is empty"},
    {FIRST_LINE "op\t1\t2\tT\t\n", ":2:10: name: is empty"},
    {FIRST_LINE "\ninput\tx\n", ":3:1: 2 fields, but \"input|output NAME BYTES\" (single tabs between) has 3"},
    {FIRST_LINE "output\tx\t0\n", ":2:10: size: is not within 1 to 4294967295 bytes"},
};

/* A dataset with as many buffers as the list has, each of its size. */
static aclmdlDataset *make_dataset(aclmdlDesc *description, size_t count, size_t (*size_of)(aclmdlDesc *description, size_t index)) {
    aclmdlDataset *dataset = aclmdlCreateDataset();
    for (size_t i = 0; i < count; i++) {
        size_t size = size_of(description, i);
        void *memory = NULL;
        EXPECT_EQUAL(aclrtMalloc(&memory, size, ACL_MEM_MALLOC_NORMAL_ONLY), ACL_SUCCESS);
        EXPECT_EQUAL(aclmdlAddDatasetBuffer(dataset, aclCreateDataBuffer(memory, size)), ACL_SUCCESS);
    }
    return dataset;
}

static void free_dataset(aclmdlDataset *dataset) {
    for (size_t i = 0; i < aclmdlGetDatasetNumBuffers(dataset); i++) {
        aclDataBuffer *buffer = aclmdlGetDatasetBuffer(dataset, i);
        EXPECT_EQUAL(aclrtFree(aclGetDataBufferAddr(buffer)), ACL_SUCCESS);
        EXPECT_EQUAL(aclDestroyDataBuffer(buffer), ACL_SUCCESS);
    }
    EXPECT_EQUAL(aclmdlDestroyDataset(dataset), ACL_SUCCESS);
}

/* Executes the model once and unloads it. */
static void run(uint32_t id) {
    aclmdlDesc *description = aclmdlCreateDesc();
    EXPECT_EQUAL(aclmdlGetDesc(description, id), ACL_SUCCESS);
    aclmdlDataset *input = make_dataset(description, aclmdlGetNumInputs(description), aclmdlGetInputSizeByIndex);
    aclmdlDataset *output = make_dataset(description, aclmdlGetNumOutputs(description), aclmdlGetOutputSizeByIndex);
    records_clear();
    EXPECT_EQUAL(aclmdlExecute(id, input, output), ACL_SUCCESS);
    free_dataset(input);
    free_dataset(output);
    EXPECT_EQUAL(aclmdlDestroyDesc(description), ACL_SUCCESS);
    EXPECT_EQUAL(aclmdlUnload(id), ACL_SUCCESS);
}

static void test_good(void) {
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        uint32_t id = 0;
        aclError error = aclmdlLoadFromMem(good[i].text, strlen(good[i].text), &id);
        if (error) {
            fprintf(stderr, "case %zu: %s\n", i, aclGetRecentErrMsg());
        }
        EXPECT_EQUAL(error, ACL_SUCCESS);
        run(id);
        char *listing = records_listing();
        EXPECT_TEXT(listing, good[i].listing);
        free(listing);
    }
}

static void expect_bad(const char *text, size_t size, const char *complaint) {
    char wanted[300];
    uint32_t id = 4711;
    snprintf(wanted, sizeof wanted, "model in memory%s", complaint);
    EXPECT_EQUAL(aclmdlLoadFromMem(text, size, &id), ACL_ERROR_INVALID_FILE);
    EXPECT_TEXT(aclGetRecentErrMsg(), wanted);
    EXPECT(aclGetRecentErrMsg() == NULL);
    EXPECT_EQUAL(id, 4711);
}

static void test_bad(void) {
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        /* in memory of just that size, where the sanitizer sees a read past the end */
        size_t size = strlen(bad[i].text);
        char *exact = malloc(size ? size : 1);
        memcpy(exact, bad[i].text, size);
        expect_bad(exact, size, bad[i].complaint);
        free(exact);
    }
    static const char with_nul[] = HEADER "a,T,1,1\nb\0c,T,1,1\n";
    expect_bad(with_nul, sizeof with_nul - 1, ":3:2: a NUL byte");
}

static void expect_bad_file(const char *path, const char *complaint) {
    char wanted[300];
    uint32_t id;
    size_t work;
    size_t weights;
    snprintf(wanted, sizeof wanted, "%s: %s", path, complaint);
    EXPECT_EQUAL(aclmdlLoadFromFile(path, &id), ACL_ERROR_INVALID_FILE);
    EXPECT_TEXT(aclGetRecentErrMsg(), wanted);
    EXPECT_EQUAL(aclmdlQuerySize(path, &work, &weights), ACL_ERROR_INVALID_FILE);
    EXPECT_TEXT(aclGetRecentErrMsg(), wanted);
}

static void write_file(const char *path, const char *text) {
    FILE *file = fopen(path, "w");
    EXPECT(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

static void test_files(void) {
    char folder[] = "/tmp/opstream-rt-XXXXXX";
    uint32_t id;
    EXPECT(mkdtemp(folder) && chdir(folder) == 0);

    EXPECT(symlink("loop", "loop") == 0 && mkfifo("pipe", 0600) == 0);
    write_file("empty", "");
    write_file("bad.csv", HEADER "a,T,1,-2\n");
    expect_bad_file(folder, "is a directory, not a file");
    expect_bad_file("loop", strerror(ELOOP));
    expect_bad_file("./pipe", "is a device or a pipe, not a file");
    expect_bad_file("./resnet50", strerror(ENOENT));
    expect_bad_file("resnet51", "no such file, and no built-in workload either (resnet50, bert-base, llm-decode)");
    expect_bad_file("empty", "is empty");
    EXPECT_EQUAL(aclmdlLoadFromFile("bad.csv", &id), ACL_ERROR_INVALID_FILE);
    EXPECT_TEXT(aclGetRecentErrMsg(), "bad.csv:2:7: Duration(us): \"-2\" is negative");

    /* told apart by content; a file goes before the built-in workload of its name */
    write_file("resnet50", FIRST_LINE "op\t9\t8\tT\tn\n");
    EXPECT_EQUAL(aclmdlLoadFromFile("resnet50", &id), ACL_SUCCESS);
    run(id);
    char *listing = records_listing();
    EXPECT_TEXT(listing, "0 8 T n\n8 na keypoint_op\n");
    free(listing);

    static const char *const names[] = {"loop", "pipe", "empty", "bad.csv", "resnet50"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        EXPECT(unlink(names[i]) == 0);
    }
    EXPECT(chdir("/") == 0 && rmdir(folder) == 0);
}

static void test_builtins(void) {
    for (size_t i = 0; i < sizeof builtins / sizeof builtins[0]; i++) {
        uint32_t id;
        EXPECT_EQUAL(aclmdlLoadFromFile(builtins[i].name, &id), ACL_SUCCESS);
        aclmdlDesc *description = aclmdlCreateDesc();
        EXPECT_EQUAL(aclmdlGetDesc(description, id), ACL_SUCCESS);
        EXPECT_EQUAL(aclmdlGetInputSizeByIndex(description, 0), builtins[i].input_bytes);
        EXPECT_EQUAL(aclmdlGetOutputSizeByIndex(description, 0), builtins[i].output_bytes);
        EXPECT_EQUAL(aclmdlDestroyDesc(description), ACL_SUCCESS);

        run(id);
        EXPECT_EQUAL(records_count(), builtins[i].operators + 1);
        char *first = records_listing();
        EXPECT_EQUAL(aclmdlLoadFromFile(builtins[i].name, &id), ACL_SUCCESS);
        run(id);
        char *second = records_listing();
        EXPECT_TEXT(second, first);
        free(first);
        free(second);
    }
}

int main(void) {
    records_attach();
    EXPECT_EQUAL(aclInit(NULL), ACL_SUCCESS);
    EXPECT_EQUAL(aclrtSetDevice(0), ACL_SUCCESS);
    test_good();
    test_bad();
    test_files();
    test_builtins();
    records_clear();
    EXPECT_EQUAL(aclrtResetDevice(0), ACL_SUCCESS);
    EXPECT_EQUAL(aclFinalize(), ACL_SUCCESS);
    return 0;
}
