/* A program that knows nothing of AscendCL and loads, as servers load their back ends, a plug-in that does: plugin_host PLUGIN ARGUMENT… */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv) {
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
