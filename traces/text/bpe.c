/* Byte-pair encoding of a word: of all pairs of neighbours that may merge, the one of the lowest
 * rank, and of these the leftmost, until there is none.
 *
 * Words of up to SHORT bytes are scanned for it; longer ones have a heap of pairs, so that a word
 * of a megabyte takes n log n. Short words that were seen before are taken from a table. */
#include "text/text.h"

#include <string.h>

enum { SHORT = 96, CACHED_BYTES = 30, CACHED_IDS = 8, N_CACHED = 1 << 15 };

/* 64 bytes: a line of the processor's cache. */
struct text_cached {
    uint8_t n_bytes, n_ids; /* n_bytes 0: empty */
    char word[CACHED_BYTES];
    uint32_t ids[CACHED_IDS];
};

struct text_merge_at {
    uint32_t rank, at, id;
};

#define NO_RANK UINT32_MAX
#define NO_SYMBOL UINT32_MAX

int text_bpe_open(struct text_bpe *bpe, struct ifl_error *error)
{
    *bpe = (struct text_bpe){.cache = calloc(N_CACHED, sizeof *bpe->cache)};
    return bpe->cache ? 0 : ifl_fail_nomem(error);
}

void text_bpe_close(struct text_bpe *bpe)
{
    free(bpe->cache);
    free(bpe->id);
    free(bpe->heap);
    *bpe = (struct text_bpe){0};
}

/* ---- short words ---- */

struct symbols {
    size_t n;
    uint32_t id[SHORT];
    uint32_t rank[SHORT]; /* of the merge with the next one; NO_RANK: none */
    uint32_t merged[SHORT];
};

static void look_up(const struct text_merges *merges, struct symbols *symbols, size_t i)
{
    const struct text_merge *merge =
        i + 1 < symbols->n ? text_merges_find(merges, symbols->id[i], symbols->id[i + 1]) : NULL;
    symbols->rank[i] = merge ? merge->rank : NO_RANK;
    symbols->merged[i] = merge ? merge->id : 0;
}

static void close_gap(uint32_t *of, size_t at, size_t n)
{
    memmove(of + at, of + at + 1, (n - at - 1) * sizeof *of);
}

static void merge_short(const struct ifl_tokenizer *tokenizer, struct symbols *symbols)
{
    for (size_t i = 0; i < symbols->n; i++)
        look_up(&tokenizer->merges, symbols, i);
    for (;;) {
        size_t best = 0;
        for (size_t i = 1; i < symbols->n; i++)
            best = symbols->rank[i] < symbols->rank[best] ? i : best;
        if (symbols->rank[best] == NO_RANK)
            return;
        symbols->id[best] = symbols->merged[best];
        close_gap(symbols->id, best + 1, symbols->n);
        close_gap(symbols->rank, best + 1, symbols->n);
        close_gap(symbols->merged, best + 1, symbols->n);
        symbols->n--;
        look_up(&tokenizer->merges, symbols, best);
        if (best > 0)
            look_up(&tokenizer->merges, symbols, best - 1);
    }
}

/* ---- long words ---- */

static bool before(const struct text_merge_at *a, const struct text_merge_at *b)
{
    return a->rank != b->rank ? a->rank < b->rank : a->at < b->at;
}

static void push(struct text_bpe *bpe, struct text_merge_at merge)
{
    size_t at = bpe->n_heap++;
    for (; at > 0 && before(&merge, &bpe->heap[(at - 1) / 2]); at = (at - 1) / 2)
        bpe->heap[at] = bpe->heap[(at - 1) / 2];
    bpe->heap[at] = merge;
}

static struct text_merge_at pop(struct text_bpe *bpe)
{
    const struct text_merge_at first = bpe->heap[0], last = bpe->heap[--bpe->n_heap];
    size_t at = 0;
    for (size_t child; (child = 2 * at + 1) < bpe->n_heap; at = child) {
        child += child + 1 < bpe->n_heap && before(&bpe->heap[child + 1], &bpe->heap[child]);
        if (!before(&bpe->heap[child], &last))
            break;
        bpe->heap[at] = bpe->heap[child];
    }
    bpe->heap[at] = last;
    return first;
}

/* Puts the pair that begins at `at` on the heap if it may merge. */
static void propose(struct text_bpe *bpe, const struct text_merges *merges, uint32_t at)
{
    if (at == NO_SYMBOL || bpe->next[at] == NO_SYMBOL)
        return;
    const struct text_merge *merge = text_merges_find(merges, bpe->id[at], bpe->id[bpe->next[at]]);
    if (merge)
        push(bpe, (struct text_merge_at){merge->rank, at, merge->id});
}

/* False: one of the two symbols has merged otherwise since the pair was proposed. */
static bool still_stands(const struct text_bpe *bpe, const struct text_merges *merges,
                         const struct text_merge_at *proposed)
{
    const uint32_t at = proposed->at;
    if (bpe->id[at] == TEXT_NO_ID || bpe->next[at] == NO_SYMBOL)
        return false;
    const struct text_merge *merge = text_merges_find(merges, bpe->id[at], bpe->id[bpe->next[at]]);
    return merge && merge->id == proposed->id && merge->rank == proposed->rank;
}

static void merge_at(struct text_bpe *bpe, const struct text_merges *merges,
                     const struct text_merge_at *merge)
{
    const uint32_t at = merge->at, gone = bpe->next[at];
    bpe->id[at] = merge->id;
    bpe->id[gone] = TEXT_NO_ID;
    bpe->next[at] = bpe->next[gone];
    if (bpe->next[at] != NO_SYMBOL)
        bpe->prev[bpe->next[at]] = at;
    propose(bpe, merges, at);
    propose(bpe, merges, bpe->prev[at]);
}

/* Each merge takes one pair and proposes at most two, so 3 n_bytes is room enough. */
static int begin_long(struct text_bpe *bpe, size_t n_bytes, struct ifl_error *error)
{
    if (trace_reserve(&bpe->id, &bpe->cap_symbols, 3 * n_bytes, sizeof *bpe->id, error) < 0 ||
        trace_reserve(&bpe->heap, &bpe->cap_heap, 3 * n_bytes, sizeof *bpe->heap, error) < 0)
        return error->code;
    bpe->prev = bpe->id + n_bytes;
    bpe->next = bpe->prev + n_bytes;
    bpe->n_heap = 0;
    return 0;
}

static int word_long(struct text_bpe *bpe, const struct ifl_tokenizer *tokenizer, const char *word,
                     size_t n_bytes, struct text_ids *ids, struct ifl_error *error)
{
    const struct text_merges *merges = &tokenizer->merges;
    if (begin_long(bpe, n_bytes, error) < 0 ||
        trace_reserve(&ids->of, &ids->cap, ids->n + n_bytes, sizeof *ids->of, error) < 0)
        return error->code;
    for (uint32_t i = 0; i < n_bytes; i++) {
        bpe->id[i] = tokenizer->vocab.id_of_byte[(unsigned char)word[i]];
        bpe->prev[i] = i == 0 ? NO_SYMBOL : i - 1;
        bpe->next[i] = i + 1 < n_bytes ? i + 1 : NO_SYMBOL;
    }
    for (uint32_t i = 0; i < n_bytes; i++)
        propose(bpe, merges, i);
    while (bpe->n_heap > 0) {
        const struct text_merge_at first = pop(bpe);
        if (still_stands(bpe, merges, &first))
            merge_at(bpe, merges, &first);
    }
    for (uint32_t i = 0; i != NO_SYMBOL; i = bpe->next[i])
        ids->of[ids->n++] = bpe->id[i];
    return 0;
}

/* ---- any word ---- */

int text_ids_append(struct text_ids *ids, const uint32_t *of, size_t n, struct ifl_error *error)
{
    const int rc = trace_reserve(&ids->of, &ids->cap, ids->n + n, sizeof *ids->of, error);
    if (rc < 0)
        return rc;
    memcpy(ids->of + ids->n, of, n * sizeof *of);
    ids->n += n;
    return 0;
}

static struct text_cached *slot_of(struct text_bpe *bpe, const char *word, size_t n_bytes)
{
    return &bpe->cache[text_hash(word, n_bytes) % N_CACHED];
}

bool text_bpe_known(struct text_bpe *bpe, const char *word, size_t n_bytes, const uint32_t **ids,
                    size_t *n_ids)
{
    if (n_bytes > CACHED_BYTES)
        return false;
    const struct text_cached *cached = slot_of(bpe, word, n_bytes);
    *ids = cached->ids;
    *n_ids = cached->n_ids;
    return cached->n_bytes == n_bytes && memcmp(cached->word, word, n_bytes) == 0;
}

void text_bpe_keep(struct text_bpe *bpe, const char *word, size_t n_bytes, const uint32_t *ids,
                   size_t n_ids)
{
    if (n_bytes > CACHED_BYTES || n_ids > CACHED_IDS)
        return;
    struct text_cached *cached = slot_of(bpe, word, n_bytes);
    cached->n_bytes = (uint8_t)n_bytes;
    cached->n_ids = (uint8_t)n_ids;
    memcpy(cached->word, word, n_bytes);
    memcpy(cached->ids, ids, n_ids * sizeof *ids);
}

int text_bpe_word(struct text_bpe *bpe, const struct ifl_tokenizer *tokenizer, const char *word,
                  size_t n_bytes, struct text_ids *ids, struct ifl_error *error)
{
    struct symbols symbols;
    const uint32_t *known;
    size_t n_known;
    ifl_assert(n_bytes > 0);
    if (text_bpe_known(bpe, word, n_bytes, &known, &n_known))
        return text_ids_append(ids, known, n_known, error);
    symbols.n = 0;
    if (tokenizer->whole_words && n_bytes <= TEXT_MAX_TOKEN_BYTES) {
        symbols.id[0] = text_vocab_find(&tokenizer->vocab, word, n_bytes);
        symbols.n = symbols.id[0] != TEXT_NO_ID;
    }
    if (symbols.n == 0 && n_bytes > SHORT)
        return word_long(bpe, tokenizer, word, n_bytes, ids, error);
    if (symbols.n == 0) {
        for (; symbols.n < n_bytes; symbols.n++)
            symbols.id[symbols.n] = tokenizer->vocab.id_of_byte[(unsigned char)word[symbols.n]];
        merge_short(tokenizer, &symbols);
    }
    text_bpe_keep(bpe, word, n_bytes, symbols.id, symbols.n);
    return text_ids_append(ids, symbols.id, symbols.n, error);
}

int text_bpe_letters(struct text_bpe *bpe, const struct ifl_tokenizer *tokenizer, const char *word,
                     size_t n_bytes, struct text_ids *ids, struct ifl_error *error)
{
    struct symbols symbols = {.n = 1, .id = {tokenizer->blank}};
    if (n_bytes >= SHORT || (word[0] == ' ' && !tokenizer->merges_blanks))
        return 0;
    for (size_t i = 0; i < n_bytes; i++) {
        if (i > 0 && word[i] == ' ' && word[i - 1] == ' ' && !tokenizer->merges_blanks)
            return 0;
        symbols.id[symbols.n] = tokenizer->vocab.id_of_byte[(unsigned char)word[i]];
        if (symbols.id[symbols.n++] == TEXT_NO_ID)
            return 0;
    }
    merge_short(tokenizer, &symbols);
    text_bpe_keep(bpe, word, n_bytes, symbols.id, symbols.n);
    const int rc = text_ids_append(ids, symbols.id, symbols.n, error);
    return rc < 0 ? rc : 1;
}
