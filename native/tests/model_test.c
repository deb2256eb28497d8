#include "check.h"
#include "opstream.h"

static const char *library_path;
static char text[256];

static void test_no_library(void) {
    opstream_model *model = NULL;
    int acl_error = 0;
    CHECK_EQ_INT(opstream_model_open("/nonexistent", "resnet50", 0, text, sizeof text, &acl_error, &model), OPSTREAM_E_LIBRARY);
    CHECK(strstr(text, "libascendcl.so") && strstr(text, "/nonexistent"));
    CHECK(!model && acl_error == 0);
}

static void test_refused(const char *path, uint32_t device, const char *call) {
    opstream_model *model = NULL;
    int acl_error = 0;
    CHECK_EQ_INT(opstream_model_open(library_path, path, device, text, sizeof text, &acl_error, &model), OPSTREAM_E_VENDOR);
    CHECK(strncmp(text, call, strlen(call)) == 0);
    CHECK(strlen(text) > strlen(call) + 2); /* the vendor's words follow */
    CHECK(!model && acl_error != 0);
    /* Room for a part only, or none. */
    char tiny[4] = "xxx";
    CHECK_EQ_INT(opstream_model_open(library_path, path, device, tiny, sizeof tiny, &acl_error, &model), OPSTREAM_E_VENDOR);
    CHECK_EQ_U64(strlen(tiny), 3);
    CHECK_EQ_INT(opstream_model_open(library_path, path, device, NULL, 0, &acl_error, &model), OPSTREAM_E_VENDOR);
}

static void test_execution(const char *path) {
    opstream_model *model, *second;
    int acl_error = 0;
    int status = opstream_model_open(library_path, path, 1, text, sizeof text, &acl_error, &model);
    if (status != OPSTREAM_OK) {
        CHECK_FAIL("%s: %s, %d: %s", path, opstream_status_name(status), acl_error, text);
    }
    CHECK_EQ_INT(opstream_model_open(library_path, path, 1, text, sizeof text, &acl_error, &second), OPSTREAM_E_BUSY);
    for (int i = 0; i < 10; i++) {
        CHECK_EQ_INT(opstream_model_execute(model, &acl_error), 0);
    }
    opstream_model_close(model);
}

/* A model that takes batches of several sizes is executed with one of 1. */
static void test_dynamic_batch(void) {
    char path[] = "/tmp/opstream-model-XXXXXX";
    int fd = mkstemp(path);
    FILE *file = fdopen(fd, "w");
    CHECK(file);
    fputs("opstream-workload 1\ninput\tdata\t64\ninput\tascend_mbatch_shape_data\t8\noutput\tout\t32\nop\t0\t1000\tRelu\trelu\n", file);
    CHECK(fclose(file) == 0);
    test_execution(path);
    unlink(path);
}

int main(void) {
    library_path = getenv("OPSTREAM_SIM_LIBRARY_PATH");
    CHECK(library_path);
    setenv("OPSTREAM_SIM_SPEED", "0", 1);
    unsetenv("LD_LIBRARY_PATH");
    opstream_model_close(NULL);
    test_no_library();
    test_refused("no-such-workload", 0, "aclmdlLoadFromFile");
    test_refused("resnet50", 1000, "aclrtSetDevice");
    test_execution("resnet50");
    test_execution("resnet50"); /* again, in the same process */
    test_dynamic_batch();
    return 0;
}
