/* The label `model`. */
#include <unistd.h>

#include "check.h"
#include "model_name.h"

static void check_path(const char *path, const char *expected) {
    char name[MODEL_NAME_BYTES];
    model_name_of_path(path, name);
    CHECK_EQ_STR(name, expected);
}

static void test_paths(void) {
    check_path("/models/resnet50.om", "resnet50");
    check_path("resnet50.om", "resnet50");
    check_path("/models/bert", "bert");
    check_path("/models/bert.onnx", "bert.onnx");
    check_path("/models/resnet50/model.om", "resnet50");
    check_path("/models/resnet50/1/model.om", "resnet50");
    check_path("/models/resnet50/v2/1.om", "resnet50");
    check_path("/srv/triton//resnet50///1//model.om", "resnet50");
    check_path("/model.om", "model");
    check_path("/1/model.om", "model");
    check_path("/3.om", "3");
    check_path(".om", ".om");
    check_path("/models/x/", "x");
    CHECK(chdir("/usr/lib") == 0); /* where a relative path says nothing, the folder that it begins in does */
    check_path("", "lib");
    check_path("model.om", "lib");
    check_path("./1/model.om", "lib");

    char path[700], name[MODEL_NAME_BYTES], again[MODEL_NAME_BYTES];
    memset(path, 'a', sizeof path);
    path[sizeof path - 1] = '\0';
    model_name_of_path(path, name);
    CHECK_EQ_U64(strlen(name), MODEL_NAME_BYTES - 1);
    path[sizeof path - 2] = 'b';
    model_name_of_path(path, again);
    CHECK(strcmp(name, again) != 0); /* what was cut is told apart by its hash */
}

static void test_memory(void) {
    char name[MODEL_NAME_BYTES], again[MODEL_NAME_BYTES];
    model_name_of_memory("content", 7, name);
    model_name_of_memory("content", 7, again);
    CHECK_EQ_STR(name, again);
    CHECK_EQ_STR(name, "model-0d6e09c1"); /* for ever: dashboards know it */
    model_name_of_memory("contend", 7, again);
    CHECK(strcmp(name, again) != 0);
    model_name_of_memory("", 0, again);
    CHECK_EQ_U64(strlen(again), strlen("model-01234567"));
}

static void test_bundles(void) {
    char name[MODEL_NAME_BYTES], longer[MODEL_NAME_BYTES];
    model_name_in_bundle("pair", 1, name);
    CHECK_EQ_STR(name, "pair-1");
    memset(longer, 'a', sizeof longer);
    longer[sizeof longer - 1] = '\0';
    model_name_in_bundle(longer, 12, name);
    CHECK_EQ_U64(strlen(name), MODEL_NAME_BYTES - 1);
    CHECK_EQ_STR(name + MODEL_NAME_BYTES - 4, "-12");
}

int main(void) {
    test_paths();
    test_memory();
    test_bundles();
    return 0;
}
