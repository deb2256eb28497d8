/* One decode step of a language model of 0.6 billion parameters in 28 layers, with 2,048 tokens in its cache. */
#include "builtin.h"

#define LAYERS 28u
#define HIDDEN 1024u
#define HEADS 16u
#define CACHE_HEADS 8u
#define HEAD 128u
#define INNER 3072u
#define VOCABULARY 151936u
#define CACHED 2048u

#define QUERY (HEADS * HEAD)
#define CACHE (CACHE_HEADS * HEAD)

static void positions(struct sketch *sketch) {
    sketch_vector(sketch, "GatherV2", 4 * HIDDEN, "model/embed_tokens/GatherV2");
    sketch_vector(sketch, "Range", 8 * CACHED, "model/attention_mask/Range");
    sketch_vector(sketch, "GreaterEqual", 9 * CACHED, "model/attention_mask/GreaterEqual");
    sketch_vector(sketch, "Select", 5 * CACHED, "model/attention_mask/Select");
    sketch_vector(sketch, "Cast", 12, "model/rotary_emb/Cast");
    sketch_vector(sketch, "Mul", 8 * HEAD, "model/rotary_emb/Mul");
    sketch_vector(sketch, "ConcatD", 8 * HEAD, "model/rotary_emb/ConcatD");
    sketch_vector(sketch, "Cos", 8 * HEAD, "model/rotary_emb/Cos");
    sketch_vector(sketch, "Sin", 8 * HEAD, "model/rotary_emb/Sin");
    sketch_vector(sketch, "Cast", 6 * HEAD, "model/rotary_emb/Cast_1");
    sketch_vector(sketch, "Cast", 6 * HEAD, "model/rotary_emb/Cast_2");
}

static void attention(struct sketch *sketch, unsigned layer) {
    sketch_vector(sketch, "Cast", 6 * HIDDEN, "model/layers.%u/input_layernorm/Cast", layer);
    sketch_vector(sketch, "RmsNorm", 6 * HIDDEN, "model/layers.%u/input_layernorm/RmsNorm", layer);
    sketch_matmul(sketch, "MatMulV2", 1, HIDDEN, QUERY + 2 * CACHE, "model/layers.%u/self_attn/qkv_proj/MatMulV2", layer);
    sketch_vector(sketch, "SplitVD", 4 * (QUERY + 2 * CACHE), "model/layers.%u/self_attn/SplitVD", layer);
    sketch_vector(sketch, "RmsNorm", 4 * QUERY, "model/layers.%u/self_attn/q_norm/RmsNorm", layer);
    sketch_vector(sketch, "RmsNorm", 4 * CACHE, "model/layers.%u/self_attn/k_norm/RmsNorm", layer);
    sketch_vector(sketch, "RotaryMul", 4 * QUERY, "model/layers.%u/self_attn/rotary_emb/RotaryMul", layer);
    sketch_vector(sketch, "RotaryMul", 4 * CACHE, "model/layers.%u/self_attn/rotary_emb/RotaryMul_1", layer);
    sketch_vector(sketch, "ReshapeAndCache", 8 * CACHE, "model/layers.%u/self_attn/ReshapeAndCache", layer);
    sketch_cube(sketch, "IncreFlashAttention", 4 * CACHED * QUERY, 2 * 2 * CACHED * CACHE, "model/layers.%u/self_attn/IncreFlashAttention",
                layer);
    sketch_matmul(sketch, "MatMulV2", 1, QUERY, HIDDEN, "model/layers.%u/self_attn/o_proj/MatMulV2", layer);
    sketch_vector(sketch, "Add", 6 * HIDDEN, "model/layers.%u/Add", layer);
}

static void feed_forward(struct sketch *sketch, unsigned layer) {
    sketch_vector(sketch, "RmsNorm", 6 * HIDDEN, "model/layers.%u/post_attention_layernorm/RmsNorm", layer);
    sketch_matmul(sketch, "MatMulV2", 1, HIDDEN, 2 * INNER, "model/layers.%u/mlp/gate_up_proj/MatMulV2", layer);
    sketch_vector(sketch, "SwiGlu", 6 * INNER, "model/layers.%u/mlp/act_fn/SwiGlu", layer);
    sketch_matmul(sketch, "MatMulV2", 1, INNER, HIDDEN, "model/layers.%u/mlp/down_proj/MatMulV2", layer);
    sketch_vector(sketch, "Add", 6 * HIDDEN, "model/layers.%u/Add_1", layer);
}

static void sampling(struct sketch *sketch) {
    sketch_vector(sketch, "RmsNorm", 6 * HIDDEN, "model/norm/RmsNorm");
    sketch_matmul(sketch, "MatMulV2", 1, HIDDEN, VOCABULARY, "lm_head/MatMulV2");
    sketch_vector(sketch, "Cast", 6 * VOCABULARY, "lm_head/Cast");
    sketch_vector(sketch, "RealDiv", 8 * VOCABULARY, "sampler/temperature/RealDiv");
    sketch_vector(sketch, "TopKV2", 12 * VOCABULARY, "sampler/TopKV2");
    sketch_vector(sketch, "SoftmaxV2", 8 * VOCABULARY, "sampler/SoftmaxV2");
    sketch_vector(sketch, "Cumsum", 8 * VOCABULARY, "sampler/Cumsum");
    sketch_vector(sketch, "GatherV2", 16, "sampler/GatherV2");
}

void builtin_llm_decode(struct sketch *sketch) {
    sketch_tensor(sketch, &sketch->workload->inputs, "input_ids", ACL_INT64, ACL_FORMAT_ND, (const int64_t[4]){1, 1});
    sketch_tensor(sketch, &sketch->workload->inputs, "position_ids", ACL_INT64, ACL_FORMAT_ND, (const int64_t[4]){1, 1});
    sketch_tensor(sketch, &sketch->workload->outputs, "logits", ACL_FLOAT, ACL_FORMAT_ND, (const int64_t[4]){1, VOCABULARY});
    sketch_tensor(sketch, &sketch->workload->outputs, "next_token", ACL_INT64, ACL_FORMAT_ND, (const int64_t[4]){1, 1});
    sketch->workload->weight_bytes = (size_t)2 * 596049920;

    positions(sketch);
    for (unsigned layer = 0; layer < LAYERS; layer++) {
        attention(sketch, layer);
        feed_forward(sketch, layer);
    }
    sampling(sketch);
}
