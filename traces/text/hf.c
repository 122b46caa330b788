/* tokenizer.json of Hugging Face's `tokenizers` (0.23): a BPE model over bytes, its splits, NFC,
 * added tokens. */
#include "text/text.h"

#include <string.h>

struct reading {
    const struct text_file *file;
    struct ifl_tokenizer *tokenizer;
    struct ifl_error *error;
};

#define REFUSE(reading, ...) ifl_fail_at((reading)->error, (reading)->file->path, 0, 0, __VA_ARGS__)

static const char *type_of(const json_t *part)
{
    const char *type = json_string_value(json_object_get(part, "type"));
    return type ? type : "no object with a type";
}

/* "" or null count as nothing said. */
static bool says(const json_t *part, const char *key)
{
    const json_t *value = json_object_get(part, key);
    return value && !json_is_null(value) && !json_is_false(value) &&
           !(json_is_string(value) && json_string_length(value) == 0) &&
           !(json_is_number(value) && json_number_value(value) == 0);
}

/* ---- the alphabet: a letter for each byte (GPT-2, src/encoder.py, bytes_to_unicode) ---- */

enum { N_LETTERS = 324 };

struct alphabet {
    int byte_of[N_LETTERS]; /* -1: no letter */
};

static void make_alphabet(struct alphabet *alphabet)
{
    int n_others = 0;
    memset(alphabet->byte_of, 0xff, sizeof alphabet->byte_of);
    for (int byte = 0; byte < 256; byte++) {
        const bool is_own = (byte >= 33 && byte <= 126) || (byte >= 161 && byte != 173);
        alphabet->byte_of[is_own ? byte : 256 + n_others++] = byte;
    }
}

/* The number of bytes; -1 if the word has other letters: no text has such a token. */
static int spell(const struct alphabet *alphabet, const char *word, size_t n, char *bytes)
{
    int n_bytes = 0;
    for (size_t i = 0; i < n; i++) {
        unsigned letter = (unsigned char)word[i];
        if (letter >= 0xe0 || (letter >= 0x80 && i + 1 == n))
            return -1;
        if (letter >= 0x80)
            letter = (letter & 0x1f) << 6 | ((unsigned char)word[++i] & 0x3f);
        if (letter >= N_LETTERS || alphabet->byte_of[letter] < 0)
            return -1;
        bytes[n_bytes++] = (char)alphabet->byte_of[letter];
    }
    return n_bytes;
}

/* ---- the model ---- */

static int read_vocab(struct reading *r, const struct alphabet *alphabet, json_t *vocab)
{
    const char *word;
    json_t *id;
    char bytes[TEXT_MAX_TOKEN_BYTES], shown[40];
    if (!json_is_object(vocab) || json_object_size(vocab) > TEXT_MAX_IDS)
        return REFUSE(r, "model.vocab is missing or has more than %d tokens, expected {token: id}",
                      TEXT_MAX_IDS);
    for (void *at = json_object_iter(vocab); at; at = json_object_iter_next(vocab, at)) {
        word = json_object_iter_key(at);
        id = json_object_iter_value(at);
        const size_t n = strlen(word);
        snprintf(shown, sizeof shown, "%.30s", word);
        if (n > TEXT_MAX_TOKEN_BYTES)
            return REFUSE(r, "model.vocab has a token of %zu bytes, expected at most %d", n,
                          TEXT_MAX_TOKEN_BYTES);
        if (!json_is_integer(id) || json_integer_value(id) < 0 ||
            json_integer_value(id) >= INT32_MAX)
            return REFUSE(r, "model.vocab has no id from 0 on for \"%s\"", shown);
        const int n_bytes = spell(alphabet, word, n, bytes);
        if (n_bytes < 0 && text_extras_add(&r->tokenizer->extras, word, n,
                                           (uint32_t)json_integer_value(id), false, r->error) < 0)
            return r->error->code;
        if (n_bytes > 0 && text_vocab_add(&r->tokenizer->vocab, bytes, (size_t)n_bytes,
                                          (uint32_t)json_integer_value(id), r->error) < 0)
            return r->error->code;
    }
    unsigned missing;
    return text_vocab_end(&r->tokenizer->vocab, &missing) == 0
               ? 0
               : REFUSE(r, "model.vocab has no token for the byte 0x%02x, expected all 256",
                        missing);
}

struct halves {
    const char *left, *right;
    size_t n_left, n_right;
};

/* "a b" or ["a", "b"]. */
static bool take_apart(const json_t *merge, struct halves *halves)
{
    const json_t *left = json_array_get(merge, 0), *right = json_array_get(merge, 1);
    const char *text = json_string_value(merge), *space = text ? strchr(text, ' ') : NULL;
    if (json_is_string(left) && json_is_string(right) && json_array_size(merge) == 2) {
        *halves = (struct halves){json_string_value(left), json_string_value(right),
                                  json_string_length(left), json_string_length(right)};
        return true;
    }
    if (!space || strchr(space + 1, ' '))
        return false;
    *halves = (struct halves){text, space + 1, (size_t)(space - text), strlen(space + 1)};
    return true;
}

static int read_merge(struct reading *r, const struct alphabet *alphabet, const json_t *merge,
                      uint32_t rank)
{
    struct text_vocab *vocab = &r->tokenizer->vocab;
    char bytes[2 * TEXT_MAX_TOKEN_BYTES];
    struct halves halves;
    if (!take_apart(merge, &halves) || halves.n_left > TEXT_MAX_TOKEN_BYTES ||
        halves.n_right > TEXT_MAX_TOKEN_BYTES)
        return REFUSE(
            r, "model.merges[%u] is no pair of tokens, expected \"a b\" or [\"a\", \"b\"]", rank);
    const int n_left = spell(alphabet, halves.left, halves.n_left, bytes);
    const int n_right =
        n_left > 0 ? spell(alphabet, halves.right, halves.n_right, bytes + n_left) : -1;
    if (n_right <= 0)
        return 0;
    const uint32_t left = text_vocab_find(vocab, bytes, (size_t)n_left);
    const uint32_t right = text_vocab_find(vocab, bytes + n_left, (size_t)n_right);
    const uint32_t both = text_vocab_find(vocab, bytes, (size_t)(n_left + n_right));
    if (left == TEXT_NO_ID || right == TEXT_NO_ID || both == TEXT_NO_ID)
        return REFUSE(r, "model.merges[%u] has a token that is not in model.vocab", rank);
    return text_merges_add(&r->tokenizer->merges, left, right, rank, both, r->error);
}

static int read_merges(struct reading *r, const struct alphabet *alphabet, const json_t *merges)
{
    const size_t n = json_array_size(merges);
    if (!json_is_array(merges) || n > TEXT_MAX_IDS)
        return REFUSE(r, "model.merges is missing or has more than %d pairs, expected a list",
                      TEXT_MAX_IDS);
    int rc = text_merges_begin(&r->tokenizer->merges, n, r->error);
    for (size_t i = 0; rc == 0 && i < n; i++)
        rc = read_merge(r, alphabet, json_array_get(merges, i), (uint32_t)i);
    return rc;
}

static int read_model(struct reading *r, const json_t *model)
{
    static const char *const unknown[] = {"dropout", "continuing_subword_prefix",
                                          "end_of_word_suffix"};
    struct alphabet alphabet;
    const bool old = json_object_get(model, "merges") && !json_object_get(model, "type");
    if (!old && strcmp(type_of(model), "BPE") != 0)
        return REFUSE(r, "model is %.60s, expected BPE", type_of(model));
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++)
        if (says(model, unknown[i]))
            return REFUSE(r, "model.%s is set, expected none", unknown[i]);
    make_alphabet(&alphabet);
    r->tokenizer->whole_words = json_is_true(json_object_get(model, "ignore_merges"));
    const int rc = read_vocab(r, &alphabet, json_object_get(model, "vocab"));
    return rc < 0 ? rc : read_merges(r, &alphabet, json_object_get(model, "merges"));
}

/* ---- normalizer ---- */

static int read_normalizer(struct reading *r, const json_t *normalizer, int depth)
{
    const json_t *parts = json_object_get(normalizer, "normalizers");
    if (!normalizer || json_is_null(normalizer))
        return 0;
    if (strcmp(type_of(normalizer), "NFC") == 0) {
        r->tokenizer->nfc = TEXT_NFC_UNICODE_9;
        return 0;
    }
    if (strcmp(type_of(normalizer), "Sequence") != 0 || !json_is_array(parts) || depth > 0)
        return REFUSE(r, "normalizer is %.60s, expected NFC, a Sequence of it, or none",
                      type_of(normalizer));
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < json_array_size(parts); i++)
        rc = read_normalizer(r, json_array_get(parts, i), depth + 1);
    return rc;
}

/* ---- pre_tokenizer ---- */

int text_add_stage(struct ifl_tokenizer *tokenizer, enum text_stage_kind kind, const char *pattern,
                   size_t n_bytes, const char *where, struct ifl_error *error)
{
    struct text_stage *stage = &tokenizer->stages[tokenizer->n_stages];
    if (tokenizer->n_stages == TEXT_MAX_STAGES)
        return ifl_fail(error, IFL_E_INPUT, "%s is one split too many, expected at most %d", where,
                        TEXT_MAX_STAGES);
    stage->kind = kind;
    if (pattern && text_pattern(pattern, n_bytes, where, &stage->code, error) < 0)
        return error->code;
    tokenizer->n_stages++;
    return 0;
}

/* Escapes for a text that is matched as it stands; the caller frees it. */
static char *quoted(const char *text, size_t n, size_t *n_quoted)
{
    char *out = malloc(2 * n + 1), *at = out;
    for (size_t i = 0; out && i < n; i++) {
        if ((unsigned char)text[i] < 0x80 && !strchr("0123456789abcdefghijklmnopqrstuvwxyz"
                                                     "ABCDEFGHIJKLMNOPQRSTUVWXYZ\n\r\t ",
                                                     text[i]))
            *at++ = '\\';
        *at++ = text[i];
    }
    *n_quoted = out ? (size_t)(at - out) : 0;
    return out;
}

/* Isolated keeps matches and what is between them, Removed only one of the two (`tokenizers`,
 * Split). */
static int stage_kind(const json_t *split)
{
    const char *behavior = json_string_value(json_object_get(split, "behavior"));
    const bool invert = json_is_true(json_object_get(split, "invert"));
    if (behavior && strcmp(behavior, "Isolated") == 0)
        return TEXT_ISOLATE;
    if (behavior && strcmp(behavior, "Removed") == 0)
        return invert ? TEXT_KEEP : TEXT_REMOVE;
    return -1;
}

static int read_split(struct reading *r, const json_t *split)
{
    const json_t *pattern = json_object_get(split, "pattern");
    const json_t *regex = json_object_get(pattern, "Regex"),
                 *text = json_object_get(pattern, "String");
    const char *behavior = json_string_value(json_object_get(split, "behavior"));
    const int kind = stage_kind(split);
    if (kind < 0)
        return REFUSE(r, "pre_tokenizer Split has the behavior %.40s, expected Isolated or Removed",
                      behavior ? behavior : "missing");
    if (json_is_string(regex))
        return text_add_stage(r->tokenizer, (enum text_stage_kind)kind, json_string_value(regex),
                              json_string_length(regex), "pre_tokenizer Split", r->error);
    if (!json_is_string(text))
        return REFUSE(r,
                      "pre_tokenizer Split has no pattern, expected {Regex: ...} or {String: ...}");
    size_t n;
    char *pattern_text = quoted(json_string_value(text), json_string_length(text), &n);
    if (!pattern_text)
        return ifl_fail_nomem(r->error);
    const int rc = text_add_stage(r->tokenizer, (enum text_stage_kind)kind, pattern_text, n,
                                  "pre_tokenizer Split", r->error);
    free(pattern_text);
    return rc;
}

static int read_byte_level(struct reading *r, const json_t *part)
{
    const char *split = text_split_named("gpt2");
    const json_t *prefix = json_object_get(part, "add_prefix_space");
    const json_t *use_regex = json_object_get(part, "use_regex");
    int rc = 0;
    if (!prefix || json_is_true(prefix))
        rc =
            text_add_stage(r->tokenizer, TEXT_PREFIX, NULL, 0, "pre_tokenizer ByteLevel", r->error);
    if (rc == 0 && (!use_regex || json_is_true(use_regex)))
        rc = text_add_stage(r->tokenizer, TEXT_ISOLATE, split, strlen(split),
                            "pre_tokenizer ByteLevel", r->error);
    return rc;
}

static int read_digits(struct reading *r, const json_t *part)
{
    const char *pattern =
        json_is_true(json_object_get(part, "individual_digits")) ? "\\p{N}" : "\\p{N}+";
    return text_add_stage(r->tokenizer, TEXT_ISOLATE, pattern, strlen(pattern),
                          "pre_tokenizer Digits", r->error);
}

static int read_part(struct reading *r, const json_t *part, bool is_last)
{
    const char *type = type_of(part);
    const bool is_bytes = strcmp(type, "ByteLevel") == 0;
    if (is_bytes != is_last)
        return REFUSE(r, "pre_tokenizer has %.60s %s, expected ByteLevel there and only there",
                      type, is_last ? "last" : "in front of another");
    if (is_bytes)
        return read_byte_level(r, part);
    if (strcmp(type, "Split") == 0)
        return read_split(r, part);
    if (strcmp(type, "Digits") == 0)
        return read_digits(r, part);
    return REFUSE(
        r, "pre_tokenizer is %.60s, expected Split, Digits, ByteLevel or a Sequence of them", type);
}

static int read_pre_tokenizer(struct reading *r, const json_t *pre_tokenizer)
{
    const json_t *parts = json_object_get(pre_tokenizer, "pretokenizers");
    const size_t n = json_array_size(parts);
    if (strcmp(type_of(pre_tokenizer), "Sequence") != 0)
        return read_part(r, pre_tokenizer, true);
    if (n == 0)
        return REFUSE(r,
                      "pre_tokenizer is an empty Sequence, expected one that ends with ByteLevel");
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < n; i++)
        rc = read_part(r, json_array_get(parts, i), i + 1 == n);
    return rc;
}

/* ---- added tokens ---- */

/* Its text is spelt in the alphabet where it can be, as a token of the vocabulary. */
static int name_added(struct reading *r, const struct text_added_token *added, bool is_special)
{
    struct alphabet alphabet;
    char bytes[TEXT_MAX_TOKEN_BYTES];
    make_alphabet(&alphabet);
    const int n = spell(&alphabet, added->content, added->n_bytes, bytes);
    return text_extras_add(&r->tokenizer->extras, n < 0 ? added->content : bytes,
                           n < 0 ? added->n_bytes : (size_t)n, added->id, is_special, r->error);
}

static int read_added(struct reading *r, const json_t *token, size_t i)
{
    const json_t *id = json_object_get(token, "id"), *content = json_object_get(token, "content");
    const bool normalized = json_is_true(json_object_get(token, "normalized"));
    if (!json_is_integer(id) || json_integer_value(id) < 0 || json_integer_value(id) >= INT32_MAX ||
        !json_is_string(content) || json_string_length(content) > TEXT_MAX_TOKEN_BYTES)
        return REFUSE(r, "added_tokens[%zu] has no id from 0 on or no content of at most %d bytes",
                      i, TEXT_MAX_TOKEN_BYTES);
    if (json_is_true(json_object_get(token, "single_word")))
        return REFUSE(r, "added_tokens[%zu] is a single_word, expected none", i);
    struct text_added_token added = {
        .content = json_string_value(content),
        .n_bytes = json_string_length(content),
        .id = (uint32_t)json_integer_value(id),
        .lstrip = json_is_true(json_object_get(token, "lstrip")),
        .rstrip = json_is_true(json_object_get(token, "rstrip")),
    };
    if (name_added(r, &added, json_is_true(json_object_get(token, "special"))) < 0)
        return r->error->code;
    if (!normalized)
        return text_added_add(&r->tokenizer->added, &added, r->error);
    char *normal;
    if (text_normal(r->tokenizer, added.content, added.n_bytes, &normal, &added.n_bytes, r->error) <
        0)
        return r->error->code;
    const bool is_new = normal != added.content;
    added.content = normal;
    const int rc = text_added_add(&r->tokenizer->added_normalized, &added, r->error);
    if (is_new)
        free(normal);
    return rc;
}

static int read_all_added(struct reading *r, const json_t *tokens)
{
    int rc = 0;
    if (json_array_size(tokens) > TEXT_MAX_IDS)
        return REFUSE(r, "added_tokens has more than %d tokens", TEXT_MAX_IDS);
    for (size_t i = 0; rc == 0 && i < json_array_size(tokens); i++)
        rc = read_added(r, json_array_get(tokens, i), i);
    if (rc == 0)
        rc = text_added_end(&r->tokenizer->added, r->error);
    return rc < 0 ? rc : text_added_end(&r->tokenizer->added_normalized, r->error);
}

int text_read_hf(const struct text_file *file, const json_t *root, struct ifl_tokenizer *tokenizer,
                 struct ifl_error *error)
{
    struct reading r = {file, tokenizer, error};
    int rc = read_normalizer(&r, json_object_get(root, "normalizer"), 0);
    if (rc == 0)
        rc = read_model(&r, json_object_get(root, "model"));
    if (rc == 0)
        rc = read_pre_tokenizer(&r, json_object_get(root, "pre_tokenizer"));
    text_read_frame(json_object_get(root, "post_processor"), tokenizer);
    return rc < 0 ? rc : read_all_added(&r, json_object_get(root, "added_tokens"));
}
