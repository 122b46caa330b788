/* A tokenizer's file: which kind it is, then its reader. */
#include "text/count.h"
#include "text/text.h"

#include <string.h>
#include <utf8proc.h>

#include "inflight/unpack.h"

/* ---- the file ---- */

static int read_all(struct ifl_unpacker *unpacker, struct text_file *file, struct ifl_error *error)
{
    size_t cap = 0, n = 1;
    while (n > 0) {
        if (trace_reserve(&file->bytes, &cap, file->n_bytes + (1 << 16) + 1, 1, error) < 0 ||
            ifl_unpack(unpacker, file->bytes + file->n_bytes, cap - file->n_bytes - 1, &n, error) <
                0)
            return error->code;
        file->n_bytes += n;
        if (file->n_bytes > (size_t)TEXT_FILE_MIB << 20)
            return ifl_fail_at(error, file->path, 0, 0, "more than %d MiB, expected a tokenizer",
                               TEXT_FILE_MIB);
    }
    file->bytes[file->n_bytes] = '\0';
    return 0;
}

static int load(const char *path, struct text_file *file, struct ifl_error *error)
{
    struct ifl_unpacker *unpacker;
    *file = (struct text_file){.path = path};
    if (ifl_unpack_open(path, &unpacker, error) < 0)
        return error->code;
    const int rc = read_all(unpacker, file, error);
    ifl_unpack_close(unpacker);
    return rc;
}

/* ---- its kind ---- */

static int read_json(const struct text_file *file, struct ifl_tokenizer *tokenizer,
                     struct ifl_error *error)
{
    json_error_t found;
    json_t *root = json_loadb(file->bytes, file->n_bytes, JSON_ALLOW_NUL, &found);
    if (!root && json_error_code(&found) == json_error_out_of_memory)
        return ifl_fail_nomem(error);
    if (!root) {
        for (char *c = found.text; *c; c++)
            *c = (unsigned char)*c < ' ' ? '?' : *c;
        return ifl_fail_at(error, file->path, found.line, found.column, "not JSON: %s", found.text);
    }
    int rc;
    if (json_is_object(json_object_get(root, "model")))
        rc = text_read_hf(file, root, tokenizer, error);
    else if (json_is_array(json_object_get(root, "vocab")))
        rc = text_read_tekken(file, root, tokenizer, error);
    else
        rc = ifl_fail_at(error, file->path, 0, 0,
                         "neither a \"model\" nor a list \"vocab\", expected a tokenizer.json or a "
                         "tekken.json");
    json_decref(root);
    return rc;
}

static int read_library(const struct text_file *file, struct ifl_tokenizer *tokenizer,
                        struct ifl_error *error)
{
    char why[160] = "";
    if (text_sentencepiece_load(error) < 0)
        return error->code;
    tokenizer->sentencepiece = text_sentencepiece_open(file->bytes, file->n_bytes, why, sizeof why);
    for (char *c = why; *c; c++)
        *c = (unsigned char)*c < ' ' ? '?' : *c;
    if (!tokenizer->sentencepiece)
        return ifl_fail_at(error, file->path, 0, 0, "SentencePiece does not read it: %s", why);
    tokenizer->by_words = text_sentencepiece_by_words(tokenizer->sentencepiece);
    const int begin = text_sentencepiece_begin(tokenizer->sentencepiece);
    if (begin >= 0)
        tokenizer->frame = (struct ifl_token_frame){.before = {(uint32_t)begin}, .n_before = 1};
    return tokenizer->by_words ? text_read_pieces(tokenizer, error)
                               : text_read_unigram(tokenizer, error);
}

/* JSON begins with a brace; the first field of a model of SentencePiece with the byte 10, which
 * ends a line elsewhere. */
static int read_any(const struct text_file *file, struct ifl_tokenizer *tokenizer,
                    struct ifl_error *error)
{
    size_t at = 0;
    int found;
    size_t where;
    tokenizer->any = pcre2_compile((PCRE2_SPTR) "", 0, PCRE2_UTF, &found, &where, NULL);
    if (!tokenizer->any)
        return ifl_fail_nomem(error);
    if (file->n_bytes == 0)
        return ifl_fail_at(error, file->path, 0, 0, "the file is empty, expected a tokenizer");
    while (at < file->n_bytes && file->bytes[at] && strchr(" \t\r\n", file->bytes[at]))
        at++;
    if (file->bytes[at] == '{')
        return read_json(file, tokenizer, error);
    if (file->bytes[0] == '\n')
        return read_library(file, tokenizer, error);
    return text_read_ranks(file, tokenizer, error);
}

static int finish(const struct text_file *file, int rc, struct ifl_tokenizer *made,
                  struct ifl_tokenizer **tokenizer, struct ifl_error *error)
{
    if (rc == 0) {
        *tokenizer = made;
        return 0;
    }
    ifl_tokenizer_close(made);
    return ifl_blame_file(error, file->path);
}

int text_open_memory(const char *path, const char *bytes, size_t n_bytes,
                     struct ifl_tokenizer **tokenizer, struct ifl_error *error)
{
    struct text_file file = {path, malloc(n_bytes + 1), n_bytes};
    struct ifl_tokenizer *made = calloc(1, sizeof *made);
    *tokenizer = NULL;
    if (file.bytes && n_bytes > 0)
        memcpy(file.bytes, bytes, n_bytes);
    if (file.bytes)
        file.bytes[n_bytes] = '\0';
    const int rc =
        finish(&file, file.bytes && made ? read_any(&file, made, error) : ifl_fail_nomem(error),
               made, tokenizer, error);
    free(file.bytes);
    return rc;
}

int ifl_tokenizer_open(const char *path, struct ifl_tokenizer **tokenizer, struct ifl_error *error)
{
    char found[TEXT_PATH_BYTES];
    struct text_file file;
    struct ifl_tokenizer *made = calloc(1, sizeof *made);
    *tokenizer = NULL;
    int rc = load(text_find(path, found), &file, error);
    if (rc == 0)
        rc = made ? read_any(&file, made, error) : ifl_fail_nomem(error);
    rc = finish(&file, rc, made, tokenizer, error);
    free(file.bytes);
    return rc;
}

void ifl_tokenizer_close(struct ifl_tokenizer *tokenizer)
{
    if (!tokenizer)
        return;
    if (tokenizer->sentencepiece)
        text_sentencepiece_close(tokenizer->sentencepiece);
    text_extras_free(&tokenizer->extras);
    text_added_free(&tokenizer->added);
    text_added_free(&tokenizer->added_normalized);
    for (size_t i = 0; i < TEXT_MAX_STAGES; i++)
        pcre2_code_free(tokenizer->stages[i].code);
    pcre2_code_free(tokenizer->any);
    text_unigram_free(tokenizer->unigram);
    text_vocab_free(&tokenizer->vocab);
    text_merges_free(&tokenizer->merges);
    free(tokenizer);
}

const char *text_library_versions(char *out, size_t size)
{
    char pcre2[64] = "";
    pcre2_config(PCRE2_CONFIG_VERSION, pcre2);
    snprintf(out, size, "PCRE2 %.40s, utf8proc %.20s", pcre2, utf8proc_version());
    return out;
}
