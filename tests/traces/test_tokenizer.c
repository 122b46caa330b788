/* Tokenizers by their C interface: texts of an exact length, files that are refused, texts that
 * are. That ids are right is tried by tests/tokenizers. */
#include <criterion/criterion.h>
#include <string.h>

#include "inflight/random.h"
#include "text/text.h"

#define FIXTURE(name) "tests/tokenizers/fixtures/" name

static struct ifl_tokenizer *open_fixture(const char *path)
{
    struct ifl_error error = {0};
    struct ifl_tokenizer *tokenizer;
    cr_assert_eq(ifl_tokenizer_open(path, &tokenizer, &error), 0, "%s", error.text);
    return tokenizer;
}

static struct ifl_encoder *open_encoder(const struct ifl_tokenizer *tokenizer)
{
    struct ifl_error error = {0};
    struct ifl_encoder *encoder;
    cr_assert_eq(ifl_encoder_open(tokenizer, &encoder, &error), 0);
    return encoder;
}

static size_t count(const struct ifl_tokenizer *tokenizer, const char *text)
{
    struct ifl_error error = {0};
    struct ifl_encoder *encoder = open_encoder(tokenizer);
    const uint32_t *ids;
    size_t n;
    cr_assert_eq(ifl_encode(encoder, text, strlen(text), &ids, &n, &error), 0, "%s", error.text);
    ifl_encoder_close(encoder);
    return n;
}

/* ---- texts of a length ---- */

static void check_lengths(const char *path)
{
    static const size_t lengths[] = {0, 1, 2, 3, 17, 64, 1000, 5000};
    struct ifl_tokenizer *tokenizer = open_fixture(path);
    struct ifl_encoder *encoder = open_encoder(tokenizer);
    struct ifl_error error = {0};
    for (size_t i = 0; i < 8 * sizeof lengths / sizeof *lengths; i++) {
        char *text;
        cr_assert_eq(ifl_encoder_make_text(encoder, lengths[i / 8], i % 8, &text, &error), 0,
                     "%s: %s", path, error.text);
        cr_expect_eq(count(tokenizer, text), lengths[i / 8], "%s: %zu tokens, not %zu", path,
                     count(tokenizer, text), lengths[i / 8]);
        free(text);
    }
    ifl_encoder_close(encoder);
    ifl_tokenizer_close(tokenizer);
}

Test(tokenizer, makes_texts_of_exactly_n_tokens)
{
    check_lengths(FIXTURE("gpt2.json.gz"));
    check_lengths(FIXTURE("llama3.json.gz"));
    check_lengths(FIXTURE("qwen.json.gz"));
    check_lengths(FIXTURE("prefix.json.gz"));
    check_lengths(FIXTURE("tekken.json.gz"));
    check_lengths(FIXTURE("spm-bpe.model.gz"));
    check_lengths(FIXTURE("spm-unigram.model.gz"));
}

Test(tokenizer, texts_of_a_seed_begin_alike)
{
    struct ifl_tokenizer *tokenizer = open_fixture(FIXTURE("llama3.json.gz"));
    struct ifl_encoder *encoder = open_encoder(tokenizer);
    struct ifl_error error;
    char *brief, *whole, *other;
    cr_assert_eq(ifl_encoder_make_text(encoder, 100, 5, &brief, &error), 0);
    cr_assert_eq(ifl_encoder_make_text(encoder, 200, 5, &whole, &error), 0);
    cr_assert_eq(ifl_encoder_make_text(encoder, 100, 6, &other, &error), 0);
    cr_expect(strncmp(brief, whole, strlen(brief)) == 0 && strcmp(brief, other) != 0);
    free(brief);
    free(whole);
    free(other);
    ifl_encoder_close(encoder);
    ifl_tokenizer_close(tokenizer);
}

/* ---- texts ---- */

Test(tokenizer, text_that_is_not_utf8)
{
    struct ifl_tokenizer *tokenizer = open_fixture(FIXTURE("gpt2.json.gz"));
    struct ifl_encoder *encoder = open_encoder(tokenizer);
    struct ifl_error error;
    const uint32_t *ids;
    size_t n;
    cr_expect_eq(ifl_encode(encoder, "abc\xff", 4, &ids, &n, &error), IFL_E_INPUT);
    cr_expect_str_eq(error.text, "the text's byte 4 begins no character of UTF-8, expected UTF-8");
    cr_expect_eq(ifl_encode(encoder, "a\0b", 3, &ids, &n, &error), 0, "a NUL is a character");
    cr_expect_eq(n, 3);
    ifl_encoder_close(encoder);
    ifl_tokenizer_close(tokenizer);
}

/* What a text without any special case is made of: the heap of long words must merge as the scan of
 * short ones. Blanks keep words apart, so that a word of 5,000 letters is longer than both limits.
 */
Test(tokenizer, long_words_take_time_that_grows_almost_linearly)
{
    enum { N = 1 << 20 };
    struct ifl_tokenizer *tokenizer = open_fixture(FIXTURE("gpt2.json.gz"));
    struct ifl_encoder *encoder = open_encoder(tokenizer);
    struct ifl_error error;
    char *text = malloc(N);
    const uint32_t *ids;
    size_t n;
    cr_assert_not_null(text);
    for (size_t i = 0; i < N; i++)
        text[i] = (char)('a' + (i * i / 7 + i) % 26);
    cr_expect_eq(ifl_encode(encoder, text, N, &ids, &n, &error), 0);
    cr_expect(n > 0 && n < N);
    memset(text, ' ', N);
    cr_expect_eq(ifl_encode(encoder, text, N, &ids, &n, &error), 0, "%s", error.text);
    free(text);
    ifl_encoder_close(encoder);
    ifl_tokenizer_close(tokenizer);
}

/* A word of SHORT + n letters by the heap, against the definition, a pass over all pairs a merge.
 */
static size_t merge_by_definition(const struct ifl_tokenizer *tokenizer, uint32_t *ids, size_t n)
{
    for (;;) {
        const struct text_merge *best = NULL;
        size_t at = 0;
        for (size_t i = 0; i + 1 < n; i++) {
            const struct text_merge *merge =
                text_merges_find(&tokenizer->merges, ids[i], ids[i + 1]);
            if (merge && (!best || merge->rank < best->rank)) {
                best = merge;
                at = i;
            }
        }
        if (!best)
            return n;
        ids[at] = best->id;
        memmove(ids + at + 1, ids + at + 2, (n - at - 2) * sizeof *ids);
        n--;
    }
}

Test(tokenizer, words_of_all_lengths_merge_as_defined)
{
    static const char letters[] = "theaionrs";
    struct ifl_tokenizer *tokenizer = open_fixture(FIXTURE("gpt2.json.gz"));
    struct ifl_encoder *encoder = open_encoder(tokenizer);
    struct ifl_error error;
    char word[400];
    uint32_t expected[400];
    for (size_t n = 1; n <= sizeof word; n++) {
        for (size_t i = 0; i < n; i++) {
            word[i] = letters[(i * i * 31 + i * n + n) % 9];
            expected[i] = tokenizer->vocab.id_of_byte[(unsigned char)word[i]];
        }
        const uint32_t *ids;
        size_t n_ids;
        cr_assert_eq(ifl_encode(encoder, word, n, &ids, &n_ids, &error), 0);
        cr_assert_eq(n_ids, merge_by_definition(tokenizer, expected, n));
        cr_assert_eq(memcmp(ids, expected, n_ids * sizeof *ids), 0, "a word of %zu letters", n);
    }
    ifl_encoder_close(encoder);
    ifl_tokenizer_close(tokenizer);
}

/* ---- files ---- */

static const struct {
    const char *path, *text, *says;
} bad[] = {
    {"a", "", "the file is empty, expected a tokenizer"},
    {"a", "{", "not JSON: "},
    {"a", "{}",
     "neither a \"model\" nor a list \"vocab\", expected a tokenizer.json or a tekken.json"},
    {"a", "{\"model\": {\"type\": \"WordPiece\"}}", "model is WordPiece, expected BPE"},
    {"a", "{\"model\": {\"type\": \"Unigram\"}}", "model is Unigram, expected BPE"},
    {"a", "{\"model\": {\"type\": \"BPE\", \"dropout\": 0.1}}",
     "model.dropout is set, expected none"},
    {"a", "{\"model\": {\"type\": \"BPE\", \"end_of_word_suffix\": \"</w>\"}}",
     "model.end_of_word_suffix is set"},
    {"a", "{\"model\": {\"type\": \"BPE\"}}", "model.vocab is missing"},
    {"a", "{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": -1}}}",
     "model.vocab has no id from 0 on for \"a\""},
    {"a", "{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0}}}",
     "model.vocab has no token for the byte 0x00, expected all 256"},
    {"a", "{\"normalizer\": {\"type\": \"NFKC\"}, \"model\": {}}",
     "normalizer is NFKC, expected NFC"},
    {"a",
     "{\"normalizer\": {\"type\": \"Sequence\", \"normalizers\": [{\"type\": \"Lowercase\"}]}, "
     "\"model\": {}}",
     "normalizer is Lowercase"},
    {"a", "{\"vocab\": [], \"config\": {}}",
     "config has no pattern, no default_num_special_tokens, or a default_vocab_size that vocab "
     "does not fill"},
    {"a",
     "{\"vocab\": [{\"rank\": 1, \"token_bytes\": \"QQ==\"}], \"config\": {\"pattern\": \"a\", "
     "\"default_vocab_size\": 1, \"default_num_special_tokens\": 0}}",
     "vocab[0] has no token_bytes in base64 of at most 1024 bytes, or its rank is not 0"},
    {"a", "QQ== 0\n", "ranks of tiktoken do not say how texts are split"},
    {"/x/cl100k_base.tiktoken", "QQ== 0\nQQ 1\n", "no token in base64 and its rank"},
    {"cl100k_base", "QQ== 0\nQg== 99999999999\n", "no token in base64 and its rank"},
    {"cl100k_base", "QQ== 0\n", "no token is the byte 0x00, expected all 256"},
    {"a", "\n\x02\x03", "SentencePiece does not read it"},
};

Test(tokenizer, damaged_and_foreign_files)
{
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct ifl_tokenizer *tokenizer;
        struct ifl_error error = {0};
        const int rc =
            text_open_memory(bad[i].path, bad[i].text, strlen(bad[i].text), &tokenizer, &error);
        cr_expect_eq(rc, IFL_E_INPUT, "accepted: %s", bad[i].text);
        cr_expect(strstr(error.text, bad[i].says), "\"%s\" lacks \"%s\"", error.text, bad[i].says);
        cr_expect_str_eq(error.file, bad[i].path);
        cr_expect_null(strchr(error.text, '\n'), "more than one line: %s", error.text);
        cr_expect_null(tokenizer);
    }
}

/* A tokenizer.json with all bytes and what the arguments say; NULL: it is refused. */
static struct ifl_tokenizer *open_with(const char *merges, const char *pre_tokenizer,
                                       const char *added, struct ifl_error *error)
{
    static char text[1 << 16];
    struct ifl_tokenizer *tokenizer;
    *error = (struct ifl_error){0};
    size_t n =
        (size_t)snprintf(text, sizeof text,
                         "{\"added_tokens\": [%s], \"pre_tokenizer\": %s, \"model\": {\"type\": "
                         "\"BPE\", \"merges\": [%s], \"vocab\": {\"ab\": 256",
                         added, pre_tokenizer, merges);
    for (int byte = 0, others = 256; byte < 256; byte++) { /* bytes_to_unicode of GPT-2 */
        const bool own = (byte > 32 && byte < 127) || (byte > 160 && byte != 173);
        const int letter = own ? byte : others++;
        n += (size_t)snprintf(text + n, sizeof text - n, ", \"\\u%04x\": %d", (unsigned)letter,
                              byte);
    }
    n += (size_t)snprintf(text + n, sizeof text - n, "}}}");
    return text_open_memory("t.json", text, n, &tokenizer, error) == 0 ? tokenizer : NULL;
}

/* What its first reader says of it: its frame is asked for, and its decoder opened. */
static struct ifl_error read_with(const char *merges, const char *pre_tokenizer, const char *added)
{
    struct ifl_error error;
    struct ifl_token_frame frame;
    struct ifl_decoder *decoder;
    struct ifl_tokenizer *tokenizer = open_with(merges, pre_tokenizer, added, &error);
    if (!tokenizer)
        return error;
    if (ifl_tokenizer_frame(tokenizer, &frame, &error) == 0 &&
        ifl_decoder_open(tokenizer, &decoder, &error) == 0)
        ifl_decoder_close(decoder);
    ifl_tokenizer_close(tokenizer);
    return error;
}

#define BYTES "{\"type\": \"ByteLevel\"}"
#define SPLIT(pattern)                                                                             \
    "{\"type\": \"Sequence\", \"pretokenizers\": [{\"type\": \"Split\", \"pattern\": {\"Regex\": " \
    "\"" pattern "\"}, \"behavior\": \"Isolated\"}, " BYTES "]}"

static void expect_refused(struct ifl_error error, const char *says)
{
    cr_expect_eq(error.code, IFL_E_INPUT, "accepted, expected: %s", says);
    cr_expect(strstr(error.text, says), "\"%s\" lacks \"%s\"", error.text, says);
}

Test(tokenizer, parts_that_are_not_known)
{
    cr_expect_eq(read_with("\"a b\"", BYTES, "").code, 0);
    cr_expect_eq(read_with("[\"a\", \"b\"]", BYTES, "").code, 0);
    cr_expect_eq(read_with("\"a b\"", SPLIT("\\\\s+|(?i:'s)|[^\\\\s]+"), "").code, 0);
    expect_refused(read_with("\"a c\"", BYTES, ""), "model.merges[0] has a token that is not in");
    expect_refused(read_with("\"ab\"", BYTES, ""), "model.merges[0] is no pair of tokens");
    expect_refused(read_with("", "null", ""), "pre_tokenizer has no object with a type last");
    expect_refused(read_with("", "{\"type\": \"Metaspace\"}", ""),
                   "pre_tokenizer has Metaspace last");
    expect_refused(
        read_with("",
                  "{\"type\": \"Sequence\", \"pretokenizers\": [{\"type\": \"Whitespace\"}, " BYTES
                  "]}",
                  ""),
        "pre_tokenizer is Whitespace, expected Split, Digits, ByteLevel");
    expect_refused(
        read_with("",
                  "{\"type\": \"Sequence\", \"pretokenizers\": [{\"type\": \"Split\", \"pattern\": "
                  "{\"String\": \"a\"}, \"behavior\": \"Contiguous\"}, " BYTES "]}",
                  ""),
        "the behavior Contiguous, expected Isolated or Removed");
    expect_refused(read_with("", SPLIT("\\\\w+"), ""), "an escape that is none of");
    expect_refused(read_with("", SPLIT("ab\\\\w+"), ""),
                   " at byte 4, which engines of patterns read differently");
    expect_refused(read_with("", SPLIT(""), ""), "has a pattern of 0 bytes, expected 1 to ");
    expect_refused(read_with("", SPLIT("[a-z&&[^b]]"), ""), "a class in a class, or &&");
    expect_refused(read_with("", SPLIT("a*"), ""), "matches the empty text");
    expect_refused(read_with("", SPLIT("(a"), ""), "has a pattern that PCRE2 refuses: missing");
    expect_refused(read_with("", SPLIT("a.b"), ""), "'.', '^' or '$' outside a class");
    expect_refused(read_with("", SPLIT("(?i:ss)"), ""), "a group that is none of");
    expect_refused(read_with("", BYTES, "{\"id\": 1, \"content\": \"x\", \"single_word\": true}"),
                   "added_tokens[0] is a single_word");
    expect_refused(read_with("", BYTES, "{\"content\": \"x\"}"), "added_tokens[0] has no id");
    expect_refused(read_with("", BYTES, "{\"id\": 99999999, \"content\": \"x\"}"),
                   "the tokenizer has an id of 99999999, expected less than ");
    expect_refused(
        read_with("", BYTES, "], \"post_processor\": {\"type\": \"Bert\"}, \"x\": ["),
        "the tokenizer's post_processor is Bert, or says what is not known here; expected "
        "ByteLevel, TemplateProcessing or a Sequence of them");
}

Test(tokenizer, splits_are_bounded_in_number)
{
    char stages[8192] = "{\"type\": \"Sequence\", \"pretokenizers\": [";
    for (int i = 0; i <= TEXT_MAX_STAGES; i++)
        strcat(stages, "{\"type\": \"Digits\"}, ");
    strcat(stages, BYTES "]}");
    expect_refused(read_with("", stages, ""), "is one split too many, expected at most ");
}

Test(tokenizer, texts_are_not_made_without_words)
{
    struct ifl_error error;
    struct ifl_tokenizer *tokenizer = open_with("", BYTES, "", &error);
    cr_assert_not_null(tokenizer, "%s", error.text);
    struct ifl_encoder *encoder = open_encoder(tokenizer);
    char *text;
    cr_expect_eq(ifl_encoder_make_text(encoder, 5, 1, &text, &error), IFL_E_INPUT);
    expect_refused(error, "words of small letters, expected at least ");
    ifl_encoder_close(encoder);
    ifl_tokenizer_close(tokenizer);
}

/* A pattern that backtracks without end: the text is refused, and the reader does not hang. */
Test(tokenizer, a_pattern_gives_up_on_a_text)
{
    static const char text[] = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaac";
    struct ifl_error error;
    struct ifl_tokenizer *tokenizer = open_with("", SPLIT("(?:a+)+[bd]|c"), "", &error);
    cr_assert_not_null(tokenizer, "%s", error.text);
    struct ifl_encoder *encoder = open_encoder(tokenizer);
    const uint32_t *ids;
    size_t n;
    cr_expect_eq(ifl_encode(encoder, text, sizeof text - 1, &ids, &n, &error), IFL_E_INPUT);
    expect_refused(error, "the tokenizer's pattern gives up on the text at byte 1: ");
    ifl_encoder_close(encoder);
    ifl_tokenizer_close(tokenizer);
}

/* Words that are merged here, and kept, against the library, which has the whole text. */
Test(tokenizer, words_of_sentencepiece_are_those_of_its_library)
{
    static const char *const parts[] = {"a",   "b",        "the", "tokens", "return", "req",
                                        " ",   " ",        "  ",  "\n",     "\t",     ".",
                                        "(x)", "\xc3\xa9", "0",   "\r",     "e",      "Zq"};
    struct ifl_tokenizer *tokenizer = open_fixture(FIXTURE("spm-bpe.model.gz"));
    struct ifl_error error;
    struct ifl_encoder *own = open_encoder(tokenizer), *whole;
    struct ifl_tokenizer by_library = *tokenizer;
    by_library.by_words = false;
    cr_assert(tokenizer->by_words && tokenizer->by_merges);
    whole = open_encoder(&by_library);
    for (uint64_t i = 0; i < 20000; i++) {
        char text[400] = "";
        const uint64_t n_parts = 1 + i % 40;
        for (uint64_t k = 0; k < n_parts; k++)
            strcat(text,
                   parts[ifl_draw(i, IFL_DRAW_TEXT_WORD, k, 0) % (sizeof parts / sizeof *parts)]);
        const uint32_t *ids, *wanted;
        size_t n, n_wanted;
        cr_assert_eq(ifl_encode(own, text, strlen(text), &ids, &n, &error), 0);
        cr_assert_eq(ifl_encode(whole, text, strlen(text), &wanted, &n_wanted, &error), 0);
        cr_assert(n == n_wanted && memcmp(ids, wanted, n * sizeof *ids) == 0, "\"%s\"", text);
    }
    ifl_encoder_close(own);
    ifl_encoder_close(whole);
    ifl_tokenizer_close(tokenizer);
}

/* Ids come back as the text that they are of, byte by byte. */
Test(tokenizer, a_decoder_has_the_bytes_of_every_token)
{
    static const char *const files[] = {FIXTURE("gpt2.json.gz"), FIXTURE("llama3.json.gz"),
                                        FIXTURE("tekken.json.gz"), FIXTURE("spm-bpe.model.gz")};
    static const char text[] = "it's \xf0\x9f\x98\x80 12 \xe4\xb8\xad\n\n return(x)";
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        struct ifl_tokenizer *tokenizer = open_fixture(files[i]);
        struct ifl_encoder *encoder = open_encoder(tokenizer);
        struct ifl_decoder *decoder;
        struct ifl_error error;
        const uint32_t *ids;
        size_t n, n_text = 0;
        char found[200];
        cr_assert_eq(ifl_decoder_open(tokenizer, &decoder, &error), 0, "%s", error.text);
        cr_assert_eq(ifl_encode(encoder, text, sizeof text - 1, &ids, &n, &error), 0);
        for (size_t k = 0; k < n; k++) {
            const struct ifl_token_text token = ifl_decoder_token(decoder, ids[k]);
            cr_assert(token.bytes && n_text + token.n_bytes < sizeof found);
            memcpy(found + n_text, token.bytes, token.n_bytes);
            n_text += token.n_bytes;
        }
        const size_t n_blank = ifl_decoder_drops_blank(decoder);
        cr_expect(n_text == sizeof text - 1 + n_blank &&
                      memcmp(found + n_blank, text, sizeof text - 1) == 0,
                  "%s: %.*s", files[i], (int)n_text, found);
        cr_expect_null(ifl_decoder_token(decoder, UINT32_MAX).bytes);
        ifl_decoder_close(decoder);
        ifl_encoder_close(encoder);
        ifl_tokenizer_close(tokenizer);
    }
}
