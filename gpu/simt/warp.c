#include "warp.h"

#include "half.h"

enum { MMA_M = 16, MMA_N = 8, MMA_K = 16 };

const char *warp_op_name(enum simt_op op)
{
    static const char *const names[SIMT_N_OPS] = {
        "__syncwarp",     "a shuffle",       "a vote",         "ldmatrix",
        "ldmatrix.trans", "mma.sync (bf16)", "mma.sync (fp16)"};
    return names[op];
}

static const char *shuffle(unsigned mask, const struct warp_operand in[], struct warp_operand out[])
{
    for (unsigned lane = 0; lane < SIMT_WARP_LANES; lane++) {
        if (!(mask >> lane & 1))
            continue;
        const struct simt_shuffle *mine = (const void *)in[lane].bytes;
        if (!(mask >> mine->source_lane & 1))
            return "a shuffle reads a lane outside its mask";
        *(uint64_t *)(void *)out[lane].bytes =
            ((const struct simt_shuffle *)(const void *)in[mine->source_lane].bytes)->value;
    }
    return NULL;
}

static const char *ballot(unsigned mask, const struct warp_operand in[], struct warp_operand out[])
{
    uint32_t votes = 0;
    for (unsigned lane = 0; lane < SIMT_WARP_LANES; lane++)
        if (mask >> lane & 1)
            votes |= *(const uint32_t *)(const void *)in[lane].bytes << lane;
    for (unsigned lane = 0; lane < SIMT_WARP_LANES; lane++)
        *(uint32_t *)(void *)out[lane].bytes = votes;
    return NULL;
}

/* Lane 8 m + r brought row r of matrix m; lane l leaves with two neighbours of row l / 4, or of
 * column l / 4 when transposed, of each matrix. */
static const char *ldmatrix(bool transposed, const struct warp_operand in[],
                            struct warp_operand out[])
{
    for (unsigned lane = 0; lane < SIMT_WARP_LANES; lane++) {
        for (unsigned m = 0; m < 4; m++) {
            for (unsigned i = 0; i < 2; i++) {
                const unsigned along = lane % 4 * 2 + i, across = lane / 4;
                const unsigned row = transposed ? along : across;
                const unsigned column = transposed ? across : along;
                const uint16_t *from = (const void *)in[8 * m + row].bytes;
                ((uint16_t *)(void *)out[lane].bytes)[2 * m + i] = from[column];
            }
        }
    }
    return NULL;
}

static float part(uint32_t pair, unsigned which, bool bf16)
{
    const uint16_t bits = (uint16_t)(which ? pair >> 16 : pair);
    return bf16 ? half_from_bf16(bits) : half_from_fp16(bits);
}

/* Fragments: A's register i of lane 4 g + t holds row g + 8 (i % 2), columns 2 t + 8 (i / 2) and
 * the next; B's register i holds rows 2 t + 8 i and the next of column g. */
static void mma_unpack(const struct warp_operand in[], bool bf16, float a[MMA_M][MMA_K],
                       float b[MMA_K][MMA_N])
{
    for (unsigned lane = 0; lane < SIMT_WARP_LANES; lane++) {
        const struct simt_mma *mine = (const void *)in[lane].bytes;
        const unsigned g = lane / 4, t = lane % 4;
        for (unsigned i = 0; i < 4; i++)
            for (unsigned j = 0; j < 2; j++)
                a[g + 8 * (i % 2)][2 * t + 8 * (i / 2) + j] = part(mine->a[i], j, bf16);
        for (unsigned i = 0; i < 2; i++)
            for (unsigned j = 0; j < 2; j++)
                b[2 * t + 8 * i + j][g] = part(mine->b[i], j, bf16);
    }
}

static const char *mma(bool bf16, const struct warp_operand in[], struct warp_operand out[])
{
    float a[MMA_M][MMA_K], b[MMA_K][MMA_N], d[MMA_M][MMA_N] = {{0}};
    mma_unpack(in, bf16, a, b);
    for (int m = 0; m < MMA_M; m++)
        for (int k = 0; k < MMA_K; k++)
            for (int n = 0; n < MMA_N; n++)
                d[m][n] += a[m][k] * b[k][n];
    for (unsigned lane = 0; lane < SIMT_WARP_LANES; lane++) {
        const struct simt_mma *mine = (const void *)in[lane].bytes;
        const unsigned g = lane / 4, t = lane % 4;
        for (unsigned i = 0; i < 4; i++)
            ((float *)(void *)out[lane].bytes)[i] = mine->c[i] + d[g + 8 * (i / 2)][2 * t + i % 2];
    }
    return NULL;
}

const char *warp_resolve(enum simt_op op, unsigned mask, const struct warp_operand in[],
                         struct warp_operand out[])
{
    if (op == SIMT_SYNCWARP)
        return NULL;
    if (op == SIMT_SHUFFLE)
        return shuffle(mask, in, out);
    if (op == SIMT_BALLOT)
        return ballot(mask, in, out);
    if (mask != ~0u)
        return "a matrix operation needs the whole warp";
    if (op == SIMT_LDMATRIX || op == SIMT_LDMATRIX_TR)
        return ldmatrix(op == SIMT_LDMATRIX_TR, in, out);
    return mma(op == SIMT_MMA_BF16, in, out);
}
