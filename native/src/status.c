#include "opstream.h"

const char *opstream_status_name(int status) {
    switch (status) {
    case OPSTREAM_OK:
        return "ok";
    case OPSTREAM_E_INVALID:
        return "invalid";
    case OPSTREAM_E_MEMORY:
        return "memory";
    case OPSTREAM_E_SYSTEM:
        return "system";
    case OPSTREAM_E_LIBRARY:
        return "library";
    case OPSTREAM_E_VENDOR:
        return "vendor";
    case OPSTREAM_E_BUSY:
        return "busy";
    case OPSTREAM_E_STATE:
        return "state";
    case OPSTREAM_E_FULL:
        return "full";
    case OPSTREAM_E_NOT_MEMFD:
        return "not_memfd";
    case OPSTREAM_E_UNSEALED:
        return "unsealed";
    case OPSTREAM_E_SIZE:
        return "size";
    case OPSTREAM_E_MAGIC:
        return "magic";
    case OPSTREAM_E_VERSION:
        return "version";
    case OPSTREAM_E_LAYOUT:
        return "layout";
    default:
        return "unknown";
    }
}

const char *opstream_acl_error_name(int acl_error) {
    switch (acl_error) {
    case 100000:
        return "ACL_ERROR_INVALID_PARAM";
    case 100001:
        return "ACL_ERROR_UNINITIALIZE";
    case 100002:
        return "ACL_ERROR_REPEAT_INITIALIZE";
    case 100003:
        return "ACL_ERROR_INVALID_FILE";
    case 100010:
        return "ACL_ERROR_INVALID_PROFILING_CONFIG";
    case 100011:
        return "ACL_ERROR_INVALID_MODEL_ID";
    case 100012:
        return "ACL_ERROR_DESERIALIZE_MODEL";
    case 100013:
        return "ACL_ERROR_PARSE_MODEL";
    case 100014:
        return "ACL_ERROR_READ_MODEL_FAILURE";
    case 100042:
        return "ACL_ERROR_PROF_ALREADY_RUN";
    case 100043:
        return "ACL_ERROR_PROF_NOT_RUN";
    case 107000:
        return "ACL_ERROR_RT_PARAM_INVALID";
    case 107001:
        return "ACL_ERROR_RT_INVALID_DEVICEID";
    case 107002:
        return "ACL_ERROR_RT_CONTEXT_NULL";
    case 148046:
        return "ACL_ERROR_PROF_REPEAT_SUBSCRIBE";
    case 148047:
        return "ACL_ERROR_PROF_API_CONFLICT";
    case 200000:
        return "ACL_ERROR_BAD_ALLOC";
    case 200001:
        return "ACL_ERROR_API_NOT_SUPPORT";
    case 200002:
        return "ACL_ERROR_INVALID_DEVICE";
    case 200006:
        return "ACL_ERROR_FEATURE_UNSUPPORTED";
    case 200007:
        return "ACL_ERROR_PROF_MODULES_UNSUPPORTED";
    case 500000:
        return "ACL_ERROR_INTERNAL_ERROR";
    case 500001:
        return "ACL_ERROR_FAILURE";
    case 500002:
        return "ACL_ERROR_GE_FAILURE";
    case 500003:
        return "ACL_ERROR_RT_FAILURE";
    case 500004:
        return "ACL_ERROR_DRV_FAILURE";
    case 500005:
        return "ACL_ERROR_PROFILING_FAILURE";
    default:
        return "";
    }
}
