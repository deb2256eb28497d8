/* ResNet-50, one image of 224 x 224: 74 operators of 7 types. The graph engine fuses activations into convolutions and joins the names. */
#include "builtin.h"

struct convolution {
    uint64_t side; /* of its output */
    uint64_t kernel;
    uint64_t channels_in;
    uint64_t channels_out;
};

static uint64_t weights(struct convolution c) {
    return c.kernel * c.kernel * c.channels_in * c.channels_out;
}

static uint64_t flops(struct convolution c) {
    return 2 * c.side * c.side * weights(c);
}

static uint64_t bytes(struct convolution c) {
    return 2 * (c.side * c.side * (c.channels_in + c.channels_out) + weights(c));
}

static void block(struct sketch *sketch, unsigned stage, unsigned index, uint64_t side, uint64_t channels_in, uint64_t channels) {
    char letter = (char)('a' + index);
    struct convolution reduce = {side, 1, channels_in, channels};
    struct convolution middle = {side, 3, channels, channels};
    struct convolution expand = {side, 1, channels, 4 * channels};
    struct convolution shortcut = {side, 1, channels_in, 4 * channels};

    if (index == 0) {
        sketch_cube(sketch, "Conv2D", flops(shortcut), bytes(shortcut), "res%u%c/branch1/Conv2D", stage, letter);
    }
    sketch_cube(sketch, "Conv2D", flops(reduce), bytes(reduce), "res%u%c/branch2a/Conv2Dres%u%c/branch2a/Relu", stage, letter, stage,
                letter);
    sketch_cube(sketch, "Conv2D", flops(middle), bytes(middle), "res%u%c/branch2b/Conv2Dres%u%c/branch2b/Relu", stage, letter, stage,
                letter);
    sketch_cube(sketch, "Conv2D", flops(expand), bytes(expand), "res%u%c/branch2c/Conv2D", stage, letter);
    sketch_vector(sketch, "Add", 3 * 2 * side * side * 4 * channels, "res%u%c/Addres%u%c/Relu", stage, letter, stage, letter);
}

void builtin_resnet50(struct sketch *sketch) {
    static const unsigned blocks[] = {3, 4, 6, 3};
    const uint64_t image = 3 * 224 * 224;
    struct convolution first = {112, 7, 3, 64};

    sketch_tensor(sketch, &sketch->workload->inputs, "input", ACL_FLOAT, ACL_FORMAT_NCHW, (const int64_t[4]){1, 3, 224, 224});
    sketch_tensor(sketch, &sketch->workload->outputs, "output", ACL_FLOAT, ACL_FORMAT_ND, (const int64_t[4]){1, 1000});
    sketch->workload->weight_bytes = 2 * 25557032;

    sketch_vector(sketch, "Cast", image * (4 + 2), "input/Cast");
    sketch_vector(sketch, "TransData", image * 2 + 224 * 224 * 16 * 2, "input/TransData");
    sketch_cube(sketch, "Conv2D", flops(first), bytes(first), "conv1/Conv2Dconv1/Relu");
    sketch_vector(sketch, "MaxPool", 2 * 64 * (112 * 112 + 56 * 56), "pool1/MaxPool");

    uint64_t channels_in = 64;
    for (unsigned stage = 0; stage < 4; stage++) {
        uint64_t channels = (uint64_t)64 << stage;
        for (unsigned index = 0; index < blocks[stage]; index++) {
            block(sketch, stage + 2, index, 56 >> stage, channels_in, channels);
            channels_in = 4 * channels;
        }
    }
    sketch_vector(sketch, "AvgPool", 2 * 2048 * (7 * 7 + 1), "pool5/AvgPool");
    sketch_matmul(sketch, "MatMul", 1, 2048, 1000, "fc1000/MatMul");
}
