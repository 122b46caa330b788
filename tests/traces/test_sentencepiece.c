/* Texts that are encoded without SentencePiece's library, by its models: the ids are the library's
 * own, of the whole text. */
#include <criterion/criterion.h>
#include <string.h>

#include "inflight/random.h"
#include "text/text.h"

enum { N_TEXTS = 3000, MOST_PARTS = 40, TEXT_BYTES = 1 << 10 };

struct model {
    struct ifl_tokenizer *tokenizer;
    struct ifl_encoder *encoder;
};

static struct model open_model(const char *name)
{
    struct ifl_error error = {0};
    struct model model;
    char path[128];
    snprintf(path, sizeof path, "tests/tokenizers/fixtures/spm-%s.model.gz", name);
    cr_assert_eq(ifl_tokenizer_open(path, &model.tokenizer, &error), 0, "%s", error.text);
    cr_assert_eq(ifl_encoder_open(model.tokenizer, &model.encoder, &error), 0, "%s", error.text);
    return model;
}

static void close_model(struct model *model)
{
    ifl_encoder_close(model->encoder);
    ifl_tokenizer_close(model->tokenizer);
}

struct library_ids {
    uint32_t of[TEXT_BYTES * 4];
    size_t n;
};

static int take(void *self, const int *ids, size_t n)
{
    struct library_ids *to = self;
    cr_assert_leq(n, sizeof to->of / sizeof *to->of);
    for (to->n = 0; to->n < n; to->n++)
        to->of[to->n] = (uint32_t)ids[to->n];
    return 0;
}

static size_t below(uint64_t *state, size_t n)
{
    return (size_t)(ifl_mix((*state)++) % n);
}

static size_t draw_text(uint64_t *state, char *text)
{
    static const char *const parts[] = {" ",
                                        " ",
                                        " ",
                                        "  ",
                                        "     ",
                                        "\n",
                                        "\n\n",
                                        "\n    ",
                                        "\t",
                                        " \n",
                                        "the",
                                        "The",
                                        "request",
                                        "s",
                                        "step",
                                        "ing",
                                        "a",
                                        "b",
                                        "zzz",
                                        "==",
                                        "....",
                                        "3.14",
                                        "<x>",
                                        "<0x41>",
                                        "<unk>",
                                        "`",
                                        "\"",
                                        "don't",
                                        "\xe2\x80\x99",
                                        "\xc3\xa9",
                                        "a\xcc\x81",
                                        "\xe2\x96\x81",
                                        "\xe3\x80\x80",
                                        "\xc2\xa0",
                                        "\xef\xac\x81",
                                        "\xe6\xbc\xa2\xe5\xad\x97",
                                        "\xf0\x9f\x99\x82",
                                        "\xc2\xa8",
                                        "\r",
                                        "\x01"};
    const size_t n_parts = 1 + below(state, MOST_PARTS);
    size_t n = 0;
    for (size_t i = 0; i < n_parts; i++) {
        const char *part = parts[below(state, sizeof parts / sizeof *parts)];
        memcpy(text + n, part, strlen(part));
        n += strlen(part);
    }
    return n;
}

static void check(struct model *model, const char *text, size_t n)
{
    static struct library_ids expected;
    struct ifl_error error = {0};
    const uint32_t *ids;
    size_t n_ids;
    cr_assert_eq(ifl_encode(model->encoder, text, n, &ids, &n_ids, &error), 0, "%s", error.text);
    cr_assert_eq(
        text_sentencepiece_encode(model->tokenizer->sentencepiece, text, n, take, &expected), 0);
    cr_assert_eq(n_ids, expected.n, "%zu ids, by the library %zu: \"%.*s\"", n_ids, expected.n,
                 (int)n, text);
    for (size_t i = 0; i < n_ids; i++)
        cr_assert_eq(ids[i], expected.of[i], "id %zu: \"%.*s\"", i, (int)n, text);
}

static void check_texts(struct model *model)
{
    uint64_t state = 1;
    char text[TEXT_BYTES];
    for (int i = 0; i < N_TEXTS; i++)
        check(model, text, draw_text(&state, text));
    close_model(model);
}

Test(sentencepiece, unigram_with_bytes)
{
    struct model model = open_model("unigram");
    cr_expect(model.tokenizer->unigram && model.tokenizer->unigram->joins['\n']);
    check_texts(&model);
}

Test(sentencepiece, unigram_that_keeps_blanks_and_knows_no_bytes)
{
    struct model model = open_model("kept");
    cr_expect(model.tokenizer->unigram && model.tokenizer->unigram->keeps['\n']);
    check_texts(&model);
}

Test(sentencepiece, merges)
{
    struct model model = open_model("bpe");
    cr_expect(model.tokenizer->by_merges);
    check_texts(&model);
}

Test(sentencepiece, merges_with_runs_of_blanks)
{
    struct model model = open_model("runs");
    cr_expect(model.tokenizer->by_merges && model.tokenizer->merges_blanks);
    check_texts(&model);
}

/* ---- what only the library knows ---- */

Test(sentencepiece, letters_that_are_folded_are_the_librarys)
{
    struct model model = open_model("folded");
    cr_expect_not(model.tokenizer->by_merges);
    check_texts(&model);
}

Test(sentencepiece, symbols_of_their_own_are_the_librarys)
{
    struct model unigram = open_model("symbols"), bpe = open_model("symbols-bpe");
    cr_expect_not(unigram.tokenizer->unigram);
    cr_expect_not(bpe.tokenizer->by_merges);
    check_texts(&unigram);
    check_texts(&bpe);
}
