/* A program that links nothing of AscendCL's and loads, as servers load their back ends, a plug-in that needs it: plugin_host PLUGIN
 * ARGUMENT… With OPEN_VENDOR it opens the vendor's libraries for plug-ins that don't link them either. */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv) {
#ifdef OPEN_VENDOR
    if (!dlopen("libascendcl.so", RTLD_NOW | RTLD_GLOBAL) || !dlopen("libmsprofiler.so", RTLD_NOW | RTLD_GLOBAL)) {
        fprintf(stderr, "plugin_host: %s\n", dlerror());
        return 1;
    }
#endif
    void *plugin = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    union {
        void *address;
        int (*function)(int argc, char **argv);
    } serve = {plugin ? dlsym(plugin, "serve") : NULL};
    if (!serve.address) {
        fprintf(stderr, "plugin_host: %s\n", dlerror());
        return 1;
    }
    return serve.function(argc - 1, argv + 1);
}
