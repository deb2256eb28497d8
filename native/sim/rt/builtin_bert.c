/* BERT-base, one sequence of 128 tokens: 12 layers. */
#include "builtin.h"

#define LAYERS 12u
#define TOKENS 128u
#define HIDDEN 768u
#define HEADS 12u
#define INNER 3072u

#define ACTIVATION_BYTES (2u * TOKENS * HIDDEN)
#define SCORE_BYTES (2u * HEADS * TOKENS * TOKENS)
#define ATTENTION_FLOPS (2u * TOKENS * TOKENS * HIDDEN)

static void embeddings(struct sketch *sketch) {
    static const char *const kinds[] = {"word", "position", "token_type"};
    for (unsigned i = 0; i < 3; i++) {
        sketch_vector(sketch, "GatherV2", 2 * ACTIVATION_BYTES, "bert/embeddings/%s_embeddings/GatherV2", kinds[i]);
    }
    sketch_vector(sketch, "Add", 3 * ACTIVATION_BYTES, "bert/embeddings/Add");
    sketch_vector(sketch, "Add", 3 * ACTIVATION_BYTES, "bert/embeddings/Add_1");
    sketch_vector(sketch, "LayerNorm", 2 * ACTIVATION_BYTES, "bert/embeddings/LayerNorm");
    sketch_vector(sketch, "Cast", 12 * TOKENS, "bert/attention_mask/Cast");
    sketch_vector(sketch, "Sub", 4 * TOKENS, "bert/attention_mask/Sub");
    sketch_vector(sketch, "Mul", 4 * TOKENS, "bert/attention_mask/Mul");
}

static void attention(struct sketch *sketch, unsigned layer) {
    static const char *const projections[] = {"query", "key", "value"};
    for (unsigned i = 0; i < 3; i++) {
        sketch_matmul(sketch, "MatMul", TOKENS, HIDDEN, HIDDEN, "bert/encoder/layer_%u/attention/self/%s/MatMul", layer, projections[i]);
        sketch_vector(sketch, "ConfusionTransposeD", 2 * ACTIVATION_BYTES, "bert/encoder/layer_%u/attention/self/%s/Transpose", layer,
                      projections[i]);
    }
    sketch_cube(sketch, "BatchMatMul", ATTENTION_FLOPS, 2 * ACTIVATION_BYTES + SCORE_BYTES,
                "bert/encoder/layer_%u/attention/self/BatchMatMul", layer);
    sketch_vector(sketch, "SoftmaxV2", 2 * SCORE_BYTES,
                  "bert/encoder/layer_%u/attention/self/RealDivbert/encoder/layer_%u/attention/self/Add"
                  "bert/encoder/layer_%u/attention/self/SoftmaxV2",
                  layer, layer, layer);
    sketch_cube(sketch, "BatchMatMul", ATTENTION_FLOPS, 2 * ACTIVATION_BYTES + SCORE_BYTES,
                "bert/encoder/layer_%u/attention/self/BatchMatMul_1", layer);
    sketch_vector(sketch, "ConfusionTransposeD", 2 * ACTIVATION_BYTES, "bert/encoder/layer_%u/attention/self/Transpose", layer);
    sketch_matmul(sketch, "MatMul", TOKENS, HIDDEN, HIDDEN, "bert/encoder/layer_%u/attention/output/dense/MatMul", layer);
    sketch_vector(sketch, "Add", 3 * ACTIVATION_BYTES, "bert/encoder/layer_%u/attention/output/Add", layer);
    sketch_vector(sketch, "LayerNorm", 2 * ACTIVATION_BYTES, "bert/encoder/layer_%u/attention/output/LayerNorm", layer);
}

static void feed_forward(struct sketch *sketch, unsigned layer) {
    sketch_matmul(sketch, "MatMul", TOKENS, HIDDEN, INNER, "bert/encoder/layer_%u/intermediate/dense/MatMul", layer);
    sketch_vector(sketch, "Gelu", 2 * 2 * TOKENS * INNER, "bert/encoder/layer_%u/intermediate/Gelu", layer);
    sketch_matmul(sketch, "MatMul", TOKENS, INNER, HIDDEN, "bert/encoder/layer_%u/output/dense/MatMul", layer);
    sketch_vector(sketch, "Add", 3 * ACTIVATION_BYTES, "bert/encoder/layer_%u/output/Add", layer);
    sketch_vector(sketch, "LayerNorm", 2 * ACTIVATION_BYTES, "bert/encoder/layer_%u/output/LayerNorm", layer);
}

void builtin_bert_base(struct sketch *sketch) {
    static const char *const inputs[] = {"input_ids", "attention_mask", "token_type_ids"};
    for (unsigned i = 0; i < 3; i++) {
        sketch_tensor(sketch, &sketch->workload->inputs, inputs[i], ACL_INT64, ACL_FORMAT_ND, (const int64_t[4]){1, TOKENS});
    }
    sketch_tensor(sketch, &sketch->workload->outputs, "last_hidden_state", ACL_FLOAT, ACL_FORMAT_ND, (const int64_t[4]){1, TOKENS, HIDDEN});
    sketch_tensor(sketch, &sketch->workload->outputs, "pooler_output", ACL_FLOAT, ACL_FORMAT_ND, (const int64_t[4]){1, HIDDEN});
    sketch->workload->weight_bytes = 2 * 109482240;

    embeddings(sketch);
    for (unsigned layer = 0; layer < LAYERS; layer++) {
        attention(sketch, layer);
        feed_forward(sketch, layer);
    }
    sketch_vector(sketch, "Slice", 4 * HIDDEN, "bert/pooler/Slice");
    sketch_matmul(sketch, "MatMul", 1, HIDDEN, HIDDEN, "bert/pooler/dense/MatMul");
    sketch_vector(sketch, "Tanh", 4 * HIDDEN, "bert/pooler/Tanh");
    sketch_vector(sketch, "Cast", 6 * TOKENS * HIDDEN, "bert/last_hidden_state/Cast");
}
