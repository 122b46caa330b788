#include "import/sglang_memory.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const double mib_of_gib = 1024;

/* Numbers of GPUs below 35 GiB, and what draft heads and draft models add, in MiB. */
static const struct era {
    int since;
    long long chunk_tokens, graph_seqs, graph_seqs_of_4; /* the last with 4 GPUs and more */
    double head_mib, draft_model_mib;
} eras[] = {
    {400, 2048, 0, 0, 0, 0},         {408, 2048, 0, 0, 2048, 2048},
    {502, 2048, 0, 0, 2048, 6144},   {503, 2048, 16, 80, 2048, 6144},
    {507, 2048, 24, 80, 2048, 6144}, {510, 2048, 24, 80, 4096, 6144},
    {514, 2048, 24, 80, 0, 0},       {520, 4096, 48, 160, 0, 0},
};
/* Releases in which something changed. */
enum {
    BY_LARGE_GPU = 406,
    BY_GPU = 408,
    BY_PARTS = 503,
    PROMPT_GRAPHS = 510,
    GRAPHS_MAY_BE_OFF = 516,
    GRAPHS_WITH_IMAGES = 516, /* at the latest */
    BRIDGES_ARE_COUNTED = 520,
    GRAPHS_OF_SEATS = 523
};

static const struct era *era_of(const struct sglang_server *server)
{
    const struct era *era = eras;
    for (size_t i = 0; i < sizeof eras / sizeof *eras; i++)
        if (server->version >= eras[i].since)
            era = &eras[i];
    return era;
}

static bool is_below(const struct sglang_server *server, double gib)
{
    return server->gpu_mib < gib * mib_of_gib;
}

static bool is_since(const struct sglang_server *server, int version, int post)
{
    return server->version > version || (server->version == version && server->post >= post);
}

/* ModelConfig.is_multimodal */
static bool takes_images(const struct sglang_server *server)
{
    const struct sglang_images *images = &server->images;
    const bool is_optional = images->is_optional && server->version >= 406;
    return images->is_there && !images->is_off && (images->is_asked || !is_optional);
}

/* ---- chunks ---- */

static long long default_chunk(const struct sglang_server *server)
{
    if (server->version < BY_GPU) {
        if (server->version >= 407 && server->gpu_mib > 180000)
            return 16384;
        const bool has_role = server->version >= BY_LARGE_GPU && server->role != SGLANG_BOTH;
        return server->gpu_mib < 25000 ? 2048 : has_role ? 16384 : 8192;
    }
    if (is_below(server, 20))
        return 2048;
    if (is_below(server, 35))
        return era_of(server)->chunk_tokens;
    if (is_below(server, 60) && server->version >= BY_PARTS)
        return 4096;
    return is_below(server, 160) ? 8192 : 16384;
}

long long sglang_chunk_tokens(const struct sglang_server *server)
{
    return server->chunk_tokens != 0 ? server->chunk_tokens : default_chunk(server);
}

/* ---- to 0.5.2 ---- */

static double share_by_ranks(const struct sglang_server *server)
{
    const long long ranks =
        server->version < BY_LARGE_GPU ? server->tensor : server->tensor * server->pipeline;
    const bool drafts = server->version >= 407 && server->drafts != SGLANG_NO_DRAFTS;
    const double memory = server->gpu_mib, reserved_mib = (drafts ? 20 : 18) * mib_of_gib;
    const double share = ranks >= 16  ? 0.79
                         : ranks >= 8 ? 0.81
                         : ranks >= 4 ? 0.85
                         : ranks >= 2 ? 0.87
                                      : 0.88;
    if (server->version < BY_LARGE_GPU)
        return share;
    if (server->version >= 407 && memory > 180000)
        return 0.79;
    const double of_large = memory > 80 * mib_of_gib ? 0.88 : share;
    if (memory > 96 * mib_of_gib)
        return fmin(of_large + 48 * mib_of_gib * (1 - of_large) / memory,
                    (memory - reserved_mib) / memory);
    return drafts ? 0.95 * of_large : of_large;
}

static double drafts_mib(const struct sglang_server *server)
{
    const struct era *era = era_of(server);
    if (server->drafts == SGLANG_DRAFT_MODEL)
        return era->draft_model_mib;
    const bool counts = server->drafts == SGLANG_HEAD ||
                        (server->drafts == SGLANG_NGRAMS && server->version < BY_PARTS);
    return counts ? era->head_mib : 0;
}

static double reserve_by_gpu(const struct sglang_server *server)
{
    const double ranks = (double)(server->tensor * server->pipeline);
    const double gib = is_below(server, 35)    ? 2.8 + ranks / 10
                       : is_below(server, 90)  ? 9.5 + ranks / 2
                       : is_below(server, 160) ? 12 + ranks / 2
                                               : 32;
    return gib * mib_of_gib + drafts_mib(server) + (server->groups > 1 ? 4 * mib_of_gib : 0);
}

/* ---- from 0.5.3 on ---- */

static long long graph_seqs(const struct sglang_server *server)
{
    const struct era *era = era_of(server);
    const bool few = server->tensor < 4;
    if (server->graph_seqs > 0)
        return server->graph_seqs;
    const long long n = is_below(server, 20)    ? 8
                        : is_below(server, 35)  ? (few ? era->graph_seqs : era->graph_seqs_of_4)
                        : is_below(server, 60)  ? (few ? 32 : 160)
                        : is_below(server, 160) ? (few ? 256 : 512)
                                                : 512;
    const bool by_seats = server->version >= GRAPHS_OF_SEATS && server->max_seqs > 0;
    return by_seats && server->max_seqs < n ? server->max_seqs : n;
}

/* Captured sizes up to so many tokens: every 4 to 32, 16 to 256, 32 to 512, 64 to 1024, 256 to 4096
 * and 512 beyond. */
static long long prompt_graphs(long long most_tokens)
{
    static const long long ends[] = {32, 256, 512, 1024, 4096}, steps[] = {4, 16, 32, 64, 256};
    long long n = 0, begin = 0;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        const long long end = most_tokens < ends[i] ? most_tokens : ends[i];
        n += end > begin ? (end - begin) / steps[i] : 0;
        begin = ends[i];
    }
    return n + (most_tokens > begin ? (most_tokens - begin) / 512 : 0);
}

static bool has_prompt_graphs(const struct sglang_server *server)
{
    const bool is_against = takes_images(server) && !(server->images.keeps_prompt_graphs &&
                                                      server->version >= GRAPHS_WITH_IMAGES);
    if (server->version < PROMPT_GRAPHS || server->no_prompt_graphs || server->pipeline > 1 ||
        is_against)
        return false;
    if (server->version < 514)
        return server->role == SGLANG_BOTH && !server->no_fused_prompts;
    return server->role != SGLANG_DECODE &&
           !(server->no_graphs && server->version >= GRAPHS_MAY_BE_OFF);
}

/* The largest graph of prompts. With latent K/V it does not go by the chunk. */
static long long graph_tokens(const struct sglang_server *server)
{
    const long long chunk = sglang_chunk_tokens(server);
    if (server->is_latent)
        return 2048;
    return server->is_llama_2 && chunk > 4096 ? 4096 : chunk;
}

static double prompt_graphs_mib(const struct sglang_server *server)
{
    if (!has_prompt_graphs(server))
        return 0;
    const long long most = graph_tokens(server);
    const bool bridges = server->deepep && server->version >= BRIDGES_ARE_COUNTED;
    return 8.0 * (double)prompt_graphs(most) + (bridges ? mib_of_gib : 0);
}

static bool has_decode_graphs(const struct sglang_server *server)
{
    return server->version < GRAPHS_MAY_BE_OFF ||
           !(server->no_graphs || server->role == SGLANG_PREFILL);
}

static double decode_graphs_mib(const struct sglang_server *server)
{
    const double n = (double)graph_seqs(server), groups = (double)server->groups;
    double mib = has_decode_graphs(server) ? 2 * n : 0;
    const bool is_padded = server->groups > 1 &&
                           (server->version < GRAPHS_MAY_BE_OFF || server->role != SGLANG_PREFILL);
    if (is_padded)
        mib += n * groups * (n > 300 ? 4.5 : 3);
    return mib;
}

static double activation_tokens(const struct sglang_server *server)
{
    const long long chunk = sglang_chunk_tokens(server);
    long long n = chunk > 0 ? chunk : server->max_prefill_tokens;
    if (server->role == SGLANG_DECODE && server->version >= GRAPHS_MAY_BE_OFF)
        n = (server->max_seqs > 0 ? server->max_seqs : graph_seqs(server)) *
            (server->draft_tokens > 1 ? server->draft_tokens : 1);
    return n > 2048 ? (double)n : 2048;
}

static double reserve_by_parts(const struct sglang_server *server)
{
    double mib = 512 + 1.5 * activation_tokens(server) +
                 128.0 * (double)(server->tensor * server->pipeline) + decode_graphs_mib(server) +
                 prompt_graphs_mib(server);
    if (!(server->gpu_mib <= 60 * mib_of_gib))
        mib = fmax(mib, 10 * mib_of_gib);
    if (server->deepep && server->version >= GRAPHS_MAY_BE_OFF && has_decode_graphs(server))
        mib += 2 * mib_of_gib;
    return mib + drafts_mib(server);
}

double sglang_static_share(const struct sglang_server *server)
{
    if (server->version < BY_GPU)
        return share_by_ranks(server);
    const double mib =
        server->version < BY_PARTS ? reserve_by_gpu(server) : reserve_by_parts(server);
    char text[64]; /* rounded as Python's round does, by the decimals of the very number */
    snprintf(text, sizeof text, "%.3f", (server->gpu_mib - mib) / server->gpu_mib);
    return strtod(text, NULL);
}

/* ---- images ---- */

static bool has_encoder(const struct sglang_server *server)
{
    const bool is_left_out = (server->images.is_left_out && server->version >= 509) ||
                             (server->role == SGLANG_DECODE && server->version >= 517);
    return takes_images(server) && !is_left_out;
}

bool sglang_images_go_by_size(const struct sglang_server *server)
{
    return has_encoder(server) && is_since(server, 409, 3);
}

/* adjust_mem_fraction_for_vlm */
static double frac_by_size(const struct sglang_images *images)
{
    const double layers = images->layers > 0 ? (double)images->layers : 24;
    const double width = images->width > 0 ? (double)images->width : 1024;
    const double ratio = layers * width * width / (24 * 1024.0 * 1024);
    return 0.95 * fmax(0.8, fmin(1.05, 1 - 0.1 * (ratio - 1)));
}

double sglang_image_frac(const struct sglang_server *server, bool is_given)
{
    if (!has_encoder(server) || (is_given && server->version >= 409))
        return 1;
    if (!is_since(server, 404, 4))
        return 0.95;
    if (!is_since(server, 409, 3))
        return 0.9;
    return server->images.has_config ? frac_by_size(&server->images) : 1;
}
