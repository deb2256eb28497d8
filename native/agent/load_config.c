#include "load_config.h"

#include <stdatomic.h>
#include <string.h>

#include "agent.h"
#include "model_name.h"
#include "real.h"

#define HANDLES 32

enum attribute { PATH = 2, MEM_ADDRESS = 3, MEM_SIZE = 4 };

/* Of one handle, which its application uses from one thread at a time. */
struct note {
    const void *_Atomic handle; /* NULL: free */
    char path_name[MODEL_NAME_BYTES];
    const void *model;
    size_t model_bytes;
};

static struct note notes[HANDLES];

static struct note *note_of(const void *handle) {
    for (struct note *note = notes; note < notes + HANDLES; note++) {
        if (atomic_load_explicit(&note->handle, memory_order_acquire) == handle) {
            return note;
        }
    }
    return NULL;
}

static struct note *note_new(const void *handle) {
    for (struct note *note = notes; note < notes + HANDLES; note++) {
        const void *none = NULL;
        if (atomic_compare_exchange_strong(&note->handle, &none, handle)) {
            note->path_name[0] = '\0';
            note->model = NULL;
            note->model_bytes = 0;
            return note;
        }
    }
    return NULL;
}

static void keep(void *handle, int attribute, const void *value) {
    struct note *note = note_of(handle);
    note = note ? note : note_new(handle);
    const char *path;
    if (!note) {
        return;
    }
    switch (attribute) {
    case PATH:
        memcpy(&path, value, sizeof path);
        model_name_of_path(path, note->path_name);
        break;
    case MEM_ADDRESS:
        memcpy(&note->model, value, sizeof note->model);
        break;
    default:
        memcpy(&note->model_bytes, value, sizeof note->model_bytes);
    }
}

void load_config_name(const void *handle, char *ret_name) {
    const struct note *note = note_of(handle);
    if (note && note->path_name[0]) {
        strcpy(ret_name, note->path_name);
    } else if (note && note->model && note->model_bytes) {
        model_name_of_memory(note->model, note->model_bytes, ret_name);
    } else {
        strcpy(ret_name, "model");
    }
}

WRAPPER int aclmdlSetConfigOpt(void *handle, int attribute, const void *value, size_t bytes);
WRAPPER int aclmdlDestroyConfigHandle(void *handle);

int aclmdlSetConfigOpt(void *handle, int attribute, const void *value, size_t bytes) {
    real_aclmdlSetConfigOpt_function real = REAL(aclmdlSetConfigOpt);
    int answer = real ? real(handle, attribute, value, bytes) : REAL_MISSING;
    struct agent_visit visit;
    if (answer == 0 && attribute >= PATH && attribute <= MEM_SIZE && agent_visit_begin(&visit)) {
        keep(handle, attribute, value);
        agent_visit_end(&visit);
    }
    return answer;
}

/* Forgotten first: the vendor may give its address to another at once. */
int aclmdlDestroyConfigHandle(void *handle) {
    real_aclmdlDestroyConfigHandle_function real = REAL(aclmdlDestroyConfigHandle);
    struct note *note = handle ? note_of(handle) : NULL;
    if (note) {
        atomic_store_explicit(&note->handle, NULL, memory_order_release);
    }
    return real ? real(handle) : REAL_MISSING;
}
