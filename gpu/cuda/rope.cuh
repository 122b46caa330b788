/* Rotary embedding of Q and K, and the write of K and V to the paged pool.
 *
 *   qkv    [token][Q heads, K heads, V heads][dim]   in place for Q
 *   angles [position][cos, sin][dim / 2]             fp32, precomputed, any scaling rule
 *   pool   [block][layer][K|V][kv_head][token][dim]  at slot = block * block_tokens + offset
 *
 * With K and V in e4m3, Q becomes fp16 in place, whatever the element of the projection.
 *
 * Su et al. 2021, "RoFormer"; pairs (i, i + dim / 2) as in Hugging Face's rotate_half. A lane holds
 * eight dims of the lower half and their eight partners, so a head takes dim / 16 lanes and the
 * optional norm of a head (Qwen3) is a butterfly among them. Grid: (tokens, groups of heads). */
#ifndef GPU_CUDA_ROPE_CUH
#define GPU_CUDA_ROPE_CUH

#include "element.cuh"
#include "reduce.cuh"

enum { ROPE_THREADS = 128 };

/* A lane's share of a head: dims first .. first + 7 and their partners. */
struct rope_pair {
    float low[PACK], high[PACK];
};

template <class T>
__device__ __forceinline__ rope_pair rope_load(const T *head, int first, int half)
{
    rope_pair p;
    load_pack(head + first, p.low);
    load_pack(head + first + half, p.high);
    return p;
}

template <class T>
__device__ __forceinline__ void rope_store(T *head, int first, int half, const rope_pair &p)
{
    store_pack(head + first, p.low);
    store_pack(head + first + half, p.high);
}

__device__ __forceinline__ void rope_add(rope_pair &p, const rope_pair &q)
{
    for (int i = 0; i < PACK; i++) {
        p.low[i] += q.low[i];
        p.high[i] += q.high[i];
    }
}

template <int HEAD_DIM>
__device__ __forceinline__ void rope_norm(rope_pair &p, const rope_pair &weight, float epsilon)
{
    float squares = 0.0f;
    for (int i = 0; i < PACK; i++)
        squares += p.low[i] * p.low[i] + p.high[i] * p.high[i];
    const float scale = rsqrtf(lanes_sum<HEAD_DIM / 16>(squares) / HEAD_DIM + epsilon);
    for (int i = 0; i < PACK; i++) {
        p.low[i] *= scale * weight.low[i];
        p.high[i] *= scale * weight.high[i];
    }
}

/* One quadrant of eight fp32 angles. */
__device__ __forceinline__ void angles_load(const float *from, float v[PACK])
{
    const float4 a = reinterpret_cast<const float4 *>(from)[0];
    const float4 b = reinterpret_cast<const float4 *>(from)[1];
    v[0] = a.x, v[1] = a.y, v[2] = a.z, v[3] = a.w;
    v[4] = b.x, v[5] = b.y, v[6] = b.z, v[7] = b.w;
}

__device__ __forceinline__ void rope_turn(rope_pair &p, const float *angles, int first, int half)
{
    float cosine[PACK], sine[PACK];
    angles_load(angles + first, cosine);
    angles_load(angles + half + first, sine);
    for (int i = 0; i < PACK; i++) {
        const float low = p.low[i], high = p.high[i];
        p.low[i] = low * cosine[i] - high * sine[i];
        p.high[i] = high * cosine[i] + low * sine[i];
    }
}

/* Where a K or V head of this slot lives; V follows K's heads. */
template <class KV>
__device__ __forceinline__ KV *rope_target(const struct kv_layer &kv, int slot, int kv_index)
{
    const int block = slot / kv.block_tokens, offset = slot % kv.block_tokens;
    const size_t row = (size_t)block * kv.block_rows + kv_index * kv.block_tokens + offset;
    return static_cast<KV *>(kv.rows) + row * kv.head_dim;
}

/* A number beyond fp16's greatest becomes that one; NaN stays. */
__device__ __forceinline__ void rope_saturate(rope_pair &p)
{
    constexpr float MOST = 65504.0f;
    for (int i = 0; i < PACK; i++) {
        p.low[i] = p.low[i] > MOST ? MOST : p.low[i] < -MOST ? -MOST : p.low[i];
        p.high[i] = p.high[i] > MOST ? MOST : p.high[i] < -MOST ? -MOST : p.high[i];
    }
}

template <class T, class KV, int HEAD_DIM>
static __global__ void __launch_bounds__(ROPE_THREADS) rope_kernel(const struct rope_args args)
{
    constexpr int LANES = HEAD_DIM / 16, HALF = HEAD_DIM / 2;
    next_kernel_admit();
    previous_kernel_wait();
    const int token = blockIdx.x, slot = args.slot[token];
    const int n_rotated = args.n_heads + args.kv.n_kv_heads;
    const int n_all = n_rotated + args.kv.n_kv_heads;
    const int first = (int)threadIdx.x % LANES * PACK;
    const int wanted = (blockIdx.y * ROPE_THREADS + threadIdx.x) / LANES;
    const int head =
        wanted < n_all ? wanted : n_all - 1; /* idle lanes follow: shuffles need them */
    if (slot < 0)
        return;

    T *source = static_cast<T *>(args.qkv) + ((size_t)token * n_all + head) * HEAD_DIM;
    rope_pair p = rope_load(source, first, HALF);
    if (args.bias)
        rope_add(p, rope_load(static_cast<const T *>(args.bias) + head * HEAD_DIM, first, HALF));
    if (args.q_norm) {
        const void *weight = head < args.n_heads ? args.q_norm : args.k_norm;
        rope_pair normed = p;
        rope_norm<HEAD_DIM>(normed, rope_load(static_cast<const T *>(weight), first, HALF),
                            args.epsilon);
        p = head < n_rotated ? normed : p;
    }
    if (head < n_rotated)
        rope_turn(p, args.angles + (size_t)args.position[token] * HEAD_DIM, first, HALF);
    if (wanted >= n_all)
        return;
    if constexpr (sizeof(KV) == sizeof(T)) {
        T *target =
            head < args.n_heads ? source : rope_target<T>(args.kv, slot, head - args.n_heads);
        rope_store(target, first, HALF, p);
    } else if (head < args.n_heads) {
        rope_saturate(p);
        rope_store(reinterpret_cast<typename KV::product *>(source), first, HALF, p);
    } else {
        rope_store(rope_target<KV>(args.kv, slot, head - args.n_heads), first, HALF, p);
    }
}

#endif
