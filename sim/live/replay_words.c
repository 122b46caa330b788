/* Prompts of words. */
#include <stdlib.h>
#include <string.h>

#include "inflight/tokenizer.h"

#include "live/replay_prompt.h"

static const char *const common[REPLAY_MOST_WORDS] = {
    "the",  "of",    "and",   "to",    "in",    "is",    "that", "for",  "it",   "as",    "was",
    "with", "be",    "by",    "on",    "not",   "he",    "his",  "but",  "at",   "are",   "this",
    "have", "or",    "had",   "from",  "they",  "which", "one",  "you",  "were", "her",   "all",
    "she",  "there", "would", "their", "we",    "him",   "been", "has",  "when", "who",   "will",
    "more", "no",    "if",    "out",   "so",    "said",  "what", "up",   "its",  "about", "into",
    "than", "them",  "can",   "only",  "other", "new",   "some", "time", "could"};

void replay_words_common(struct replay_words *words)
{
    *words = (struct replay_words){.n = REPLAY_MOST_WORDS};
    for (size_t i = 0; i < REPLAY_MOST_WORDS; i++)
        words->of[i] = common[i];
}

int replay_prompt_words(const struct replay_words *words, const int32_t *ids, int32_t n,
                        struct replay_text *text)
{
    int rc = 0;
    for (int32_t i = 0; rc == 0 && i < n; i++) {
        const char *word = words->of[(uint32_t)ids[i] % words->n];
        if (i > 0 || words->blank_first)
            rc = replay_text_add(text, " ", 1);
        if (rc == 0)
            rc = replay_text_add(text, word, strlen(word));
    }
    return rc;
}

/* ---- of a tokenizer ---- */

/* 1: the words of these ids are as many tokens. */
static int count_words(struct ifl_encoder *encoder, const struct replay_words *words,
                       const int32_t *ids, int32_t n, struct ifl_error *error)
{
    struct replay_text text = {0};
    const uint32_t *tokens;
    size_t n_tokens = 0;
    int rc = replay_prompt_words(words, ids, n, &text);
    rc = rc < 0 ? ifl_fail_nomem(error)
                : ifl_encode(encoder, text.of, text.n, &tokens, &n_tokens, error);
    free(text.of);
    return rc < 0 ? rc : n_tokens == (size_t)n;
}

/* Keeps the words that stay one token each between copies of themselves, then sees whether they do
 * between one another, all after all. */
static int choose(struct ifl_encoder *encoder, struct replay_words *words, struct ifl_error *error)
{
    static const int32_t thrice[3] = {0, 0, 0};
    int32_t all[REPLAY_MOST_WORDS * 8];
    const bool blank_first = words->blank_first;
    size_t n_kept = 0;
    for (size_t i = 0; i < REPLAY_MOST_WORDS; i++) {
        const struct replay_words one = {{common[i]}, 1, blank_first};
        const int fits = count_words(encoder, &one, thrice, 3, error);
        if (fits < 0)
            return fits;
        if (fits)
            words->of[n_kept++] = common[i];
    }
    words->n = n_kept;
    if (n_kept < 2)
        return 0;
    for (int32_t i = 0; i < REPLAY_MOST_WORDS * 8; i++)
        all[i] = i * (1 + i / REPLAY_MOST_WORDS);
    return count_words(encoder, words, all, REPLAY_MOST_WORDS * 8, error);
}

int replay_words_choose(const char *tokenizer_path, struct replay_words *words,
                        struct ifl_error *error)
{
    struct ifl_tokenizer *tokenizer = NULL;
    struct ifl_encoder *encoder = NULL;
    int rc = ifl_tokenizer_open(tokenizer_path, &tokenizer, error);
    if (rc == 0)
        rc = ifl_encoder_open(tokenizer, &encoder, error);
    int fits = 0;
    for (int blank = 0; rc == 0 && fits == 0 && blank < 2; blank++) {
        *words = (struct replay_words){.blank_first = blank};
        fits = choose(encoder, words, error);
        rc = fits < 0 ? fits : 0;
    }
    if (rc == 0 && !fits)
        rc = ifl_fail_at(error, tokenizer_path, 0, 0,
                         "of %d common words fewer than two are a token each, expected a "
                         "vocabulary with English words",
                         REPLAY_MOST_WORDS);
    ifl_encoder_close(encoder);
    ifl_tokenizer_close(tokenizer);
    return rc;
}
