#include "cost/hardware.h"

#include <math.h>
#include <string.h>

#include "base/data.h"
#include "base/tree.h"
#include "cost/document.h"

#define REAL(section, field, dflt, min, max, unit, doc)                                            \
    .name = #field, .type = IFL_REAL, .offset = offsetof(struct section##_profile, field), dflt,   \
    min, max, NULL, unit, doc

static const struct ifl_param gpu_fields[] = {
    {REAL(gpu, peak_tflops, NAN, 1e-3, 1e6, "TFLOP/s", "data sheet, dense, 16-bit inputs")},
    {REAL(gpu, memory_gb_per_s, NAN, 1e-3, 1e6, "GB/s", "data sheet, device memory")},
    {"n_sms", IFL_INT, offsetof(struct gpu_profile, n_sms), NAN, 1, 100000, NULL, "SMs",
     "multiprocessors"},
    {REAL(gpu, memory_gib, NAN, 1e-3, 1e6, "GiB", "device memory as the driver reports it")},
    {REAL(gpu, tdp_w, 0, 1e-3, 1e5, "W", "data sheet, thermal design power; left out: unknown")},
    {REAL(gpu, compute_capability, 0, 1, 100, "",
          "NVIDIA's number of the architecture; left out: unknown")},
};
static const struct ifl_param gemm_fields[] = {
    {REAL(gemm, launch_us, NAN, 0, 1e6, "us", "t0: fixed time of a product")},
    {REAL(gemm, compute_frac, NAN, 1e-3, 10, "", "e_c: share of peak FLOP/s")},
    {REAL(gemm, memory_frac, NAN, 1e-3, 10, "", "e_m: share of peak bytes/s")},
    {REAL(gemm, exponent, NAN, 1, 100, "", "p: how sharp the roofline's corner is")},
    {REAL(gemm, wave_frac, 0, 0, 1, "", "a: how far tiles that do not fill the GPU are paid for")},
    {REAL(gemm, tile_frac, 0, 0, 1, "", "b: how far rows that do not fill a tile are paid for")},
    {REAL(gemm, tile_rows, 0, 0, 4096, "rows", "of a tile of more than 512 rows; 0: 128")},
    {REAL(gemm, vector_frac, 0, 0, 10, "",
          "e_v: e_m of a product of one row, where that is a kernel of its own; 0: it is not")},
};
/* The fields of gemm, none of which is required. */
static const struct ifl_param gemm_quantised_fields[] = {
    {REAL(gemm, launch_us, 0, 0, 1e6, "us", "t0: fixed time of a product and the quantisation")},
    {REAL(gemm, compute_frac, 0, 0, 10, "", "e_c: share of peak FLOP/s; 0: unknown")},
    {REAL(gemm, memory_frac, 1, 1e-3, 10, "", "e_m: share of peak bytes/s")},
    {REAL(gemm, exponent, 1, 1, 100, "", "p: how sharp the roofline's corner is")},
    {REAL(gemm, wave_frac, 0, 0, 1, "", "a: how far tiles that do not fill the GPU are paid for")},
};
static const struct ifl_param gemm_unpacked_fields[] = {
    {REAL(gemm_unpacked, reduce_us, 0, 0, 1e3, "us",
          "r: of an SM that adds its part of a column's sums, one after another; 0: none")},
};
static const struct ifl_param experts_fields[] = {
    {REAL(experts, launch_us, 0, 0, 1e6, "us", "tx: fixed time, with the sort by expert")},
    {REAL(experts, compute_frac, 0, 0, 10, "", "e_c: share of peak FLOP/s; 0: unknown")},
    {REAL(experts, memory_frac, 1, 1e-3, 10, "", "e_m: share of peak bytes/s")},
    {REAL(experts, exponent, 1, 1, 100, "", "p: how sharp the roofline's corner is")},
    {REAL(experts, expert_us, 0, 0, 1e6, "us", "x: for each expert that any token picks")},
};
static const struct ifl_param delta_fields[] = {
    {REAL(delta, launch_us, 0, 0, 1e6, "us", "tp: of a wave of prompts")},
    {REAL(delta, chain_us, 0, 0, 1e6, "us", "c: of a token, in a head of a sequence; 0: unknown")},
    {REAL(delta, decode_us, 0, 0, 1e6, "us", "td: of the decodes of a step")},
    {REAL(delta, memory_frac, 0, 0, 10, "", "e_d: share of peak bytes/s")},
};
static const struct ifl_param sparse_fields[] = {
    {REAL(sparse, layer_us, 0, 0, 1e6, "us", "ts: of a layer")},
    {REAL(sparse, decode_us, 0, 0, 1e6, "us", "of each sequence that decodes")},
    {REAL(sparse, token_us, 0, 0, 1e6, "us", "of each token of a prompt")},
    {REAL(sparse, prompt_us, 0, 0, 1e6, "us", "tp: least time of a layer with prompts")},
    {REAL(sparse, memory_frac, 1, 1e-3, 10, "", "e_d: share of peak bytes/s, of index keys")},
    {REAL(sparse, compute_frac, 0, 0, 10, "",
          "e_c: share of peak FLOP/s, of prompts' attention; 0: unknown")},
    {REAL(sparse, index_frac, 1, 1e-3, 10, "", "e_i: share of twice the peak, of index scores")},
};
static const struct ifl_param latent_fields[] = {
    {REAL(latent, layer_us, 0, 0, 1e6, "us", "tl: of a layer, beside its products and attention")},
    {REAL(latent, token_us, 0, 0, 1e6, "us", "of each token of a prompt")},
    {REAL(latent, decode_us, 0, 0, 1e6, "us", "of each sequence that decodes")},
};
static const struct ifl_param prefill_fields[] = {
    {REAL(prefill, launch_us, NAN, 0, 1e6, "us", "ta: fixed time of prefill attention")},
    {REAL(prefill, compute_frac, NAN, 1e-3, 10, "", "e_a: share of peak FLOP/s")},
    {REAL(prefill, overhead_tokens, NAN, 0, 1e6, "tokens",
          "c_tok: work of a query besides its context, in tokens of context")},
    {REAL(prefill, causal_frac, NAN, 0, 4, "",
          "kappa: share of a chunk's own square that is computed; 0.5 skips the masked half")},
    {REAL(prefill, tail_tiles, 0, 0, 1e6, "tiles",
          "tail: 128-query tiles of the longest sequence that run alone")},
    {REAL(prefill, head_us, 0, 0, 1e6, "us", "w: of an SM, for each sequence and KV head")},
};
static const struct ifl_param decode_fields[] = {
    {REAL(decode, launch_us, NAN, 0, 1e6, "us", "td: fixed time of decode attention")},
    {REAL(decode, head_us, NAN, 0, 1e6, "us", "w: of an SM, for each sequence and KV head")},
    {REAL(decode, memory_frac, NAN, 1e-3, 10, "", "e_d: share of peak bytes/s")},
    {REAL(decode, split_us, 0, 0, 1e6, "us",
          "ts: more for contexts above 128 tokens, that are split")},
    {REAL(decode, stream_gb_per_s, 0, 0, 1e6, "GB/s",
          "s: of an SM that reads a context alone, with as many KV as query heads; 0: never")},
};
static const struct ifl_param decode_mixed_fields[] = {
    {REAL(decode_mixed, head_us, NAN, 0, 1e6, "us",
          "w': of an SM, for each sequence and query head")},
    {REAL(decode_mixed, memory_frac, NAN, 0, 100, "",
          "e_d': share of peak bytes/s at which K/V is read for each query head; 0: as in decode")},
    {REAL(decode_mixed, shared_launch_frac, 0, 0, 1, "",
          "l: share of decode.launch_us and split_us that is saved; 1: one launch takes all")},
};
static const struct ifl_param elementwise_fields[] = {
    {REAL(elementwise, launch_us, NAN, 0, 1e6, "us", "te: fixed time of one kernel")},
    {REAL(elementwise, memory_frac, NAN, 1e-3, 10, "", "e_e: share of peak bytes/s")},
};
static const struct ifl_param lines_fields[] = {
    {REAL(lines, latency_us, 0, 0, 1e6, "us", "alpha of the line for small messages")},
    {REAL(lines, gb_per_s, 0, 0, 1e6, "GB/s", "beta of the line; 0: unknown, not available")},
    {REAL(lines, bulk_latency_us, 0, 0, 1e6, "us", "alpha of the line for large messages")},
    {REAL(lines, bulk_gb_per_s, 0, 0, 1e6, "GB/s", "beta of that line; 0: there is none")},
    {REAL(lines, bulk_from_bytes, 0, 0, 1e15, "bytes",
          "of the smallest large message; 0: the lower line counts")},
};
static const struct ifl_param send_recv_fields[] = {
    {REAL(send_recv, latency_us, 0, 0, 1e6, "us", "of a message between pipeline stages")},
    {REAL(send_recv, gb_per_s, 0, 0, 1e6, "GB/s", "0: unknown")},
};
static const struct ifl_param swap_fields[] = {
    {REAL(swap, piece_bytes, 0, 0, 1e12, "bytes", "of one copy; 0: a whole block, all layers")},
};
/* The fields of an all-reduce's lines, but with a required rate. */
static const struct ifl_param piece_fields[] = {
    {REAL(lines, latency_us, NAN, 0, 1e6, "us", "of each piece")},
    {REAL(lines, gb_per_s, NAN, 1e-6, 1e6, "GB/s", "of small pieces, or of all")},
    {REAL(lines, bulk_latency_us, 0, 0, 1e6, "us", "of each large piece")},
    {REAL(lines, bulk_gb_per_s, 0, 0, 1e6, "GB/s", "of large pieces; 0: all are alike")},
    {REAL(lines, bulk_from_bytes, 0, 0, 1e15, "bytes",
          "of the smallest large piece; 0: the lower line counts")},
};
static const struct ifl_param block_copy_fields[] = {
    {REAL(block_copy, launch_us, 2, 0, 1e6, "us", "of copying blocks within the device")},
    {REAL(block_copy, memory_frac, 0.7, 1e-3, 10, "", "share of peak bytes/s, read and written")},
};
#define SECTION(type, field)                                                                       \
    type##_fields, sizeof type##_fields / sizeof *type##_fields, offsetof(struct hardware, field)

static const struct section {
    const char *name;
    const struct ifl_param *fields;
    size_t n_fields;
    size_t offset;
    bool is_optional;
} sections[] = {
    {"gpu", SECTION(gpu, gpu), false},
    {"gemm", SECTION(gemm, gemm), false},
    {"gemm_fp8", SECTION(gemm_quantised, gemm_fp8), true},
    {"gemm_nvfp4", SECTION(gemm_quantised, gemm_nvfp4), true},
    {"gemm_unpacked", SECTION(gemm_unpacked, gemm_unpacked), true},
    {"experts", SECTION(experts, experts), true},
    {"experts_fp8", SECTION(experts, experts_fp8), true},
    {"experts_mxfp4", SECTION(experts, experts_mxfp4), true},
    {"experts_nvfp4", SECTION(experts, experts_nvfp4), true},
    {"latent", SECTION(latent, latent), true},
    {"delta", SECTION(delta, delta), true},
    {"sparse", SECTION(sparse, sparse), true},
    {"prefill", SECTION(prefill, prefill), false},
    {"decode", SECTION(decode, decode), false},
    {"decode_mixed", SECTION(decode_mixed, decode_mixed), false},
    {"elementwise", SECTION(elementwise, elementwise), false},
    {"allreduce_2", SECTION(lines, allreduce[0]), true},
    {"allreduce_4", SECTION(lines, allreduce[1]), true},
    {"allreduce_8", SECTION(lines, allreduce[2]), true},
    {"allreduce_2_eager", SECTION(lines, allreduce_eager[0]), true},
    {"allreduce_4_eager", SECTION(lines, allreduce_eager[1]), true},
    {"allreduce_8_eager", SECTION(lines, allreduce_eager[2]), true},
    {"send_recv", SECTION(send_recv, send_recv), true},
    {"swap", SECTION(swap, swap), true},
    {"swap_out", SECTION(piece, swap_out), false},
    {"swap_in", SECTION(piece, swap_in), false},
    {"block_copy", SECTION(block_copy, block_copy), true},
};
enum { N_SECTIONS = sizeof sections / sizeof *sections };

#define TEXT(field, doc)                                                                           \
    .name = #field, .type = IFL_TEXT, .offset = offsetof(struct hardware, field), 0, 0,            \
    sizeof(((struct hardware *)0)->field), NULL, "", doc

static const struct ifl_param texts[] = {
    {TEXT(about, "the machine and the software stack")},
    {TEXT(source, "where the numbers come from")},
    {TEXT(assumed, "the numbers that no measurement covers")},
    {TEXT(kernels, "the engine, as serving.engine, and the version whose kernels were measured")},
    {"corrections", IFL_TEXT, offsetof(struct hardware, corrections_path), 0, 0,
     sizeof((struct hardware *)0)->corrections_path, NULL, "",
     "a CSV of factors on the forms' times, beside the profile; see sim/cost/correction.h"},
};

static int read_texts(const struct node *root, struct hardware *hardware, struct ifl_error *error)
{
    const char *elsewhere[N_SECTIONS + 5] = {"fit", "deployment"}; /* fit: for fit/spread.c */
    size_t n = 2;
    for (size_t i = 0; i < N_SECTIONS; i++)
        elsewhere[n++] = sections[i].name;
    for (size_t i = 0; deployment_old_sections[i]; i++)
        elsewhere[n++] = deployment_old_sections[i];
    return fields_read(root, "", texts, sizeof texts / sizeof *texts, elsewhere, hardware, error);
}

static int read_section(const struct node *root, const struct section *section,
                        struct hardware *hardware, struct ifl_error *error)
{
    const struct node *map = tree_child(root, section->name);
    if (!section->is_optional && (!map || tree_is_null(map)))
        return tree_fail(root, error, "%s is missing, expected a map of keys", section->name);
    return fields_read(map, section->name, section->fields, section->n_fields, NULL,
                       (char *)hardware + section->offset, error);
}

static const struct node *old_section(const struct node *root)
{
    const struct node *found = NULL;
    for (size_t i = 0; deployment_old_sections[i] && !found; i++)
        found = tree_child(root, deployment_old_sections[i]);
    return found;
}

static int read_deployment(const struct node *root, const char *profile, struct platform *platform,
                           struct ifl_error *error)
{
    char folder[HARDWARE_PATH_BYTES];
    const struct node *map = tree_child(root, "deployment"), *old = old_section(root);
    const char *name = tree_text(map);
    struct deployment *deployment = &platform->deployment;
    const bool is_given = map && !tree_is_null(map);
    if (is_given && old)
        return tree_fail(old, error,
                         "%s beside deployment, which holds the same numbers, expected one of them",
                         old->key);
    if (!is_given && !old)
        return tree_fail(root, error,
                         "deployment is missing, expected the name of one, a path or a map");
    snprintf(folder, sizeof folder, "%.*s", document_folder_bytes(profile), profile);
    int code = is_given ? deployment_lay(map, "deployment", folder, deployment, error)
                        : deployment_read_old(root, deployment, error);
    if (code == 0)
        code = deployment_find(map, folder, platform->deployment_path, error);
    if (code == 0 && name && !data_is_path(name))
        snprintf(platform->deployment_name, sizeof platform->deployment_name, "%.127s", name);
    if (code == 0 && !*deployment->name)
        memcpy(deployment->name, platform->hardware.name, sizeof deployment->name);
    return code;
}

static int read_profile(const struct node *root, const char *path, struct platform *platform,
                        struct ifl_error *error)
{
    int code = read_texts(root, &platform->hardware, error);
    for (size_t i = 0; i < N_SECTIONS && !code; i++)
        code = read_section(root, &sections[i], &platform->hardware, error);
    return code ? code : read_deployment(root, path, platform, error);
}

/* The path is relative to the profile's folder, unless it is absolute. */
bool hardware_corrections(const char *profile, const struct hardware *hardware,
                          char path[HARDWARE_PATH_BYTES])
{
    const char *name = hardware->corrections_path;
    const int n_folder = *name == '/' ? 0 : document_folder_bytes(profile);
    snprintf(path, HARDWARE_PATH_BYTES, "%.*s%s", n_folder, profile, name);
    return *name;
}

static int read_corrections(const char *profile, struct hardware *hardware, struct ifl_error *error)
{
    char path[HARDWARE_PATH_BYTES];
    if (!hardware_corrections(profile, hardware, path))
        return 0;
    return corrections_read(path, &hardware->corrections, error);
}

int hardware_load(const char *name, struct platform *platform, struct ifl_error *error)
{
    struct document document;
    struct node *root = NULL;
    *platform = (struct platform){.deployment_name = ""};
    int code = document_find("hardware", name, &document, error);
    if (code)
        return code;
    memcpy(platform->hardware.name, document.stem, sizeof platform->hardware.name);
    code = tree_load(document.path, &root, error);
    if (code)
        return code;
    code = read_profile(root, document.path, platform, error);
    tree_free(root);
    return code ? code : read_corrections(document.path, &platform->hardware, error);
}

/* ---- writing ---- */

/* True for the field by which an optional section with numbers differs from one without. */
static bool decides_known(const char *field)
{
    static const char *const all[] = {"gb_per_s", "compute_frac", "layer_us", "chain_us",
                                      "reduce_us"};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strcmp(field, all[i]) == 0)
            return true;
    return false;
}

/* True for an optional section in which that field is 0. An optional section without such a
 * field has defaults and is never unknown. */
static bool is_unknown(const struct hardware *hardware, const struct section *section)
{
    const char *base = (const char *)hardware + section->offset;
    bool is_known = true;
    for (size_t i = 0; i < section->n_fields && section->is_optional; i++)
        if (decides_known(section->fields[i].name))
            is_known = *(const double *)(base + section->fields[i].offset) > 0;
    return !is_known;
}

static void write_remark(remark_fn *remark, void *context, const char *section, const char *field,
                         FILE *out)
{
    const char *text = remark ? remark(context, section, field) : NULL;
    fprintf(out, text ? "  # %s\n" : "\n", text);
}

static void write_section(const struct hardware *hardware, const struct section *section,
                          remark_fn *remark, void *context, FILE *out)
{
    char text[64];
    fprintf(out, "\n%s:", section->name);
    write_remark(remark, context, section->name, NULL, out);
    for (size_t i = 0; i < section->n_fields; i++) {
        const struct ifl_param *field = &section->fields[i];
        if (field_is_left_out(field, (const char *)hardware + section->offset))
            continue;
        field_print(field, (const char *)hardware + section->offset, text, sizeof text);
        fprintf(out, "  %s: %s", field->name, text);
        write_remark(remark, context, section->name, field->name, out);
    }
}

void hardware_write(const struct platform *platform, remark_fn *remark, void *context, FILE *out)
{
    const struct hardware *hardware = &platform->hardware;
    char text[1100];
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const char *text_of = (const char *)hardware + texts[i].offset;
        const bool may_lack = texts[i].offset == offsetof(struct hardware, corrections_path) ||
                              texts[i].offset == offsetof(struct hardware, kernels);
        if (may_lack && !*text_of)
            continue;
        field_print(&texts[i], hardware, text, sizeof text);
        fprintf(out, "%s: %s\n", texts[i].name, text);
    }
    if (*platform->deployment_name)
        fprintf(out, "deployment: %s\n", platform->deployment_name);
    for (size_t i = 0; i < N_SECTIONS; i++)
        if (!is_unknown(hardware, &sections[i]))
            write_section(hardware, &sections[i], remark, context, out);
    if (!*platform->deployment_name)
        deployment_write(&platform->deployment, remark, context, out);
}

const struct lines_profile *hardware_allreduce(const struct hardware *hardware, bool eager,
                                               int32_t n_gpus)
{
    const struct lines_profile *of = eager ? hardware->allreduce_eager : hardware->allreduce;
    for (int i = 0; i < HARDWARE_ALLREDUCES; i++)
        if (n_gpus == 2 << i && of[i].gb_per_s > 0)
            return &of[i];
    return NULL;
}
