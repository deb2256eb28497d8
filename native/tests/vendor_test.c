#include "vendor.h"

#include "rig.h"

static char text[512];

static const char *simulator(void) {
    const char *folders = getenv("OPSTREAM_SIM_LIBRARY_PATH");
    CHECK(folders != NULL);
    return folders;
}

static void test_missing(void) {
    struct vendor_library library = {0};
    unsetenv("LD_LIBRARY_PATH");
    setenv("ASCEND_HOME_PATH", "/nonexistent/home", 1);
    CHECK_EQ_INT(vendor_library_open("/nonexistent/a:/nonexistent/b", text, sizeof text, &library), OPSTREAM_E_LIBRARY);
    CHECK(strstr(text, "libascendcl.so") != NULL);
    CHECK(strstr(text, "/nonexistent/a:/nonexistent/b") != NULL && strstr(text, "/nonexistent/home/lib64") != NULL);
    CHECK(library.ascendcl == NULL && library.msprofiler == NULL);
    char tiny[8];
    CHECK_EQ_INT(vendor_library_open(NULL, tiny, sizeof tiny, &library), OPSTREAM_E_LIBRARY);
    CHECK_EQ_U64(strlen(tiny), sizeof tiny - 1);
    CHECK_EQ_INT(vendor_library_open("", NULL, 0, &library), OPSTREAM_E_LIBRARY);
}

static void check_complete(const struct vendor_library *library) {
    struct vendor vendor;
    size_t record_bytes = 0;
    CHECK_EQ_INT(vendor_load(library, text, sizeof text, &vendor), OPSTREAM_OK);
    void (*const *functions)(void) = (void (*const *)(void))(const void *)&vendor;
    for (size_t i = 0; i < sizeof vendor / sizeof *functions; i++) {
        CHECK(functions[i] != NULL);
    }
    CHECK_EQ_INT(vendor.get_op_desc_size(&record_bytes), 0);
}

static void test_configured(void) {
    struct vendor_library library;
    char folders[4096];
    snprintf(folders, sizeof folders, "/nonexistent::%s", simulator());
    CHECK_EQ_INT(vendor_library_open(folders, text, sizeof text, &library), OPSTREAM_OK);
    check_complete(&library);
}

/* A library lies in one of the simulator's folders. */
static void library_path_of(const char *soname, char *ret_path, size_t path_bytes) {
    char folders[4096];
    snprintf(folders, sizeof folders, "%s", simulator());
    for (char *folder = strtok(folders, ":"); folder != NULL; folder = strtok(NULL, ":")) {
        snprintf(ret_path, path_bytes, "%s/%s", folder, soname);
        if (access(ret_path, R_OK) == 0) {
            return;
        }
    }
    CHECK_FAIL("%s is not there", soname);
}

/* What the application has loaded, as privately as Python does, is what is found, and no folder is needed. */
static void test_loaded(void) {
    char path[4096];
    struct vendor_library library;
    library_path_of("libmsprofiler.so", path, sizeof path);
    void *loaded = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    CHECK(loaded != NULL);
    CHECK_EQ_INT(vendor_library_open("/nonexistent", text, sizeof text, &library), OPSTREAM_OK);
    CHECK(library.msprofiler == loaded);
    check_complete(&library);
}

/* The profiler's library is brought in from the folder of the application's libascendcl.so. */
static void test_beside(void) {
    char folder[] = "/tmp/opstream-vendor-XXXXXX", path[4096], link[4096];
    static const char *const sonames[] = {"libascendcl.so", "libmsprofiler.so"};
    struct vendor_library library;
    CHECK(mkdtemp(folder) != NULL);
    for (size_t i = 0; i < 2; i++) {
        library_path_of(sonames[i], path, sizeof path);
        snprintf(link, sizeof link, "%s/%s", folder, sonames[i]);
        CHECK(symlink(path, link) == 0);
    }
    snprintf(link, sizeof link, "%s/%s", folder, sonames[0]);
    CHECK(dlopen(link, RTLD_NOW | RTLD_LOCAL) != NULL);
    CHECK_EQ_INT(vendor_library_open(NULL, text, sizeof text, &library), OPSTREAM_OK);
    check_complete(&library);
    for (size_t i = 0; i < 2; i++) {
        snprintf(link, sizeof link, "%s/%s", folder, sonames[i]);
        unlink(link);
    }
    rmdir(folder);
}

/* Another library under the handle: the first function that is missing is named. */
static void test_lacking(void) {
    struct vendor_library library = {.msprofiler = dlopen("libc.so.6", RTLD_NOW)};
    struct vendor vendor = {0};
    CHECK(library.msprofiler != NULL);
    CHECK_EQ_INT(vendor_load(&library, text, sizeof text, &vendor), OPSTREAM_E_LIBRARY);
    CHECK(strstr(text, "aclprofCreateSubscribeConfig") != NULL);
    CHECK(vendor.create_subscribe_config == NULL);
}

int main(void) {
    rig_case(test_missing, "");
    rig_case(test_configured, "");
    rig_case(test_loaded, "");
    rig_case(test_beside, "");
    rig_case(test_lacking, "");
    return 0;
}
