/* Tokenizers from the inside:
 *
 *     open (which kind) --> json, tekken, ranks --> vocab, merges, split, added
 *                       \-> sentencepiece (the library)
 *     text --> added --> NFC --> split --> bpe --> ids
 *     text --> words --> merges of pieces, the best pieces, or the library --> ids (SentencePiece)
 *
 * Functions return 0 or a negative code unless they say otherwise. */
#ifndef TRACES_TEXT_TEXT_H
#define TRACES_TEXT_TEXT_H

#define PCRE2_CODE_UNIT_WIDTH 8
#include <jansson.h>
#include <pcre2.h>
#include <stdbool.h>

#include "array.h"
#include "inflight/tokenizer.h"
#include "text/sentencepiece.h"

#define TEXT_NO_ID UINT32_MAX

enum {
    TEXT_MAX_IDS = 1 << 24,         /* of a vocabulary; the largest known ones have 2^18 */
    TEXT_MAX_TOKEN_BYTES = 1 << 10, /* of one token; the largest known ones have 2^8 */
    TEXT_MAX_BYTES = 1 << 30,       /* of a text */
    TEXT_MAX_STAGES = 12,
    TEXT_FILE_MIB = 256 /* of a tokenizer's file, unpacked */
};

/* ---- vocab.c: tokens by their bytes, and the other way round ---- */

struct text_token {
    size_t at; /* in `bytes` */
    uint32_t n_bytes, id;
};

struct text_vocab {
    char *bytes;
    size_t n_bytes, cap_bytes;
    struct text_token *tokens; /* [n], in the order in which they were added */
    size_t n, cap;
    uint32_t *slots; /* [n_slots] index + 1 into `tokens`; 0: empty */
    size_t n_slots;
    uint32_t id_of_byte[256];
};

/* Adds a token. If two tokens have the same bytes, the id of the later one counts. */
int text_vocab_add(struct text_vocab *vocab, const char *bytes, size_t n_bytes, uint32_t id,
                   struct ifl_error *error);
/* Call it after the last token is added. All tokens of one byte must exist: otherwise the result is
 * 1, and *missing the first missing byte. */
int text_vocab_end(struct text_vocab *vocab, unsigned *missing);
uint32_t text_vocab_find(const struct text_vocab *vocab, const char *bytes, size_t n_bytes);
void text_vocab_free(struct text_vocab *vocab);

/* A 64-bit hash of n bytes. */
uint64_t text_hash(const char *bytes, size_t n_bytes);

/* ---- merges.c: which pair of tokens is merged into which token, and its rank ---- */

struct text_merge {
    uint64_t pair; /* left id << 32 | right id; all ones: empty */
    uint32_t rank, id;
};

struct text_merges {
    struct text_merge *slots;
    size_t n, n_slots; /* a power of two */
};

int text_merges_begin(struct text_merges *merges, size_t n_expected, struct ifl_error *error);
/* Adds a pair. A pair that exists already takes the later rank, as in `tokenizers`. */
int text_merges_add(struct text_merges *merges, uint32_t left, uint32_t right, uint32_t rank,
                    uint32_t id, struct ifl_error *error);
/* Makes the merges of a vocabulary by ranks: every pair of tokens that form a token when joined,
 * with the id of that token as rank, as tiktoken looks them up while it merges. */
int text_merges_of_ranks(struct text_merges *merges, const struct text_vocab *vocab,
                         struct ifl_error *error);
const struct text_merge *text_merges_find(const struct text_merges *merges, uint32_t left,
                                          uint32_t right);
void text_merges_free(struct text_merges *merges);

/* ---- bpe.c: a word, as bytes, to ids ---- */

struct text_cached;
struct text_bpe {
    struct text_cached *cache;
    uint32_t *id, *prev, *next; /* of the symbols of a long word; one array */
    struct text_merge_at *heap;
    size_t cap_symbols, cap_heap, n_heap;
};

struct text_ids {
    uint32_t *of;
    size_t n, cap;
};

int text_ids_append(struct text_ids *ids, const uint32_t *of, size_t n, struct ifl_error *error);
/* Looks up the word in the table of short words seen so far. Returns true if it is there; the ids
 * belong to the table. */
bool text_bpe_known(struct text_bpe *bpe, const char *word, size_t n_bytes, const uint32_t **ids,
                    size_t *n_ids);
/* Adds the word to the table, if it is short. */
void text_bpe_keep(struct text_bpe *bpe, const char *word, size_t n_bytes, const uint32_t *ids,
                   size_t n_ids);
int text_bpe_open(struct text_bpe *bpe, struct ifl_error *error);
void text_bpe_close(struct text_bpe *bpe);
/* Appends the ids of a word; n_bytes is 1 or more. */
int text_bpe_word(struct text_bpe *bpe, const struct ifl_tokenizer *tokenizer, const char *word,
                  size_t n_bytes, struct text_ids *ids, struct ifl_error *error);

/* Appends the ids of a short word of letters that are tokens, after the token of a blank, and
 * returns 1. Returns 0, and appends nothing, for any other word. */
int text_bpe_letters(struct text_bpe *bpe, const struct ifl_tokenizer *tokenizer, const char *word,
                     size_t n_bytes, struct text_ids *ids, struct ifl_error *error);

/* ---- pattern.c: regular expressions of `tokenizers` and tiktoken, by PCRE2 ---- */

/* Compiles the pattern with JIT. `where` names the pattern in errors; the caller fills in the
 * file's name. Returns IFL_E_INPUT for a construct that PCRE2 and Oniguruma read differently. */
int text_pattern(const char *pattern, size_t n_bytes, const char *where, pcre2_code **code,
                 struct ifl_error *error);
/* Returns a split pattern that tokenizers use without writing it into their files; NULL: no such
 * name. */
const char *text_split_named(const char *name);

struct text_matcher { /* of an encoder */
    pcre2_match_data *data;
    pcre2_match_context *context;
    pcre2_jit_stack *stack;
};

int text_matcher_open(struct text_matcher *matcher, struct ifl_error *error);
void text_matcher_close(struct text_matcher *matcher);
/* Finds the next match from `from` on. Returns 1 if there is one, [*begin, *end); 0 if not. The
 * text must be UTF-8. */
int text_match(struct text_matcher *matcher, const pcre2_code *code, const char *text, size_t n,
               size_t from, size_t *begin, size_t *end, struct ifl_error *error);
/* An error that names the byte, if the text is not UTF-8. */
int text_check_utf8(struct text_matcher *matcher, const pcre2_code *any, const char *text, size_t n,
                    struct ifl_error *error);

/* ---- decode.c: texts of ids ---- */

/* Copies n bytes of a piece with a blank in place of each TEXT_BLANK. Returns the length. */
size_t text_with_blanks(const char *piece, size_t n, char *text);

/* Ids beyond the vocabulary. */

struct text_extra {
    size_t at; /* in `bytes` */
    uint32_t n_bytes, id;
    bool is_special;
};

struct text_extras {
    char *bytes;
    size_t n_bytes, cap_bytes;
    struct text_extra *of;
    size_t n, cap;
};

int text_extras_add(struct text_extras *extras, const char *bytes, size_t n_bytes, uint32_t id,
                    bool is_special, struct ifl_error *error);
void text_extras_free(struct text_extras *extras);

/* ---- added.c: tokens that are cut out of the text before anything else ---- */

struct text_added_token {
    const char *content; /* borrowed while it is added */
    size_t n_bytes;
    uint32_t id;
    bool lstrip, rstrip;
};

struct text_added {
    pcre2_code *code;     /* NULL: no tokens */
    struct text_vocab of; /* ids are places in `tokens` */
    struct text_added_token *tokens;
    size_t n, cap;
};

int text_added_add(struct text_added *added, const struct text_added_token *token,
                   struct ifl_error *error);
int text_added_end(struct text_added *added, struct ifl_error *error);
void text_added_free(struct text_added *added);

/* ---- library.c: the tokenizers of SentencePiece's library, which is a module ---- */

struct text_sentencepiece;
/* Loads the module, once per program. Call it before the other functions. */
int text_sentencepiece_load(struct ifl_error *error);
/* Opens a model. On failure, *why is a text for the caller to free; NULL: out of memory. */
struct text_sentencepiece *text_sentencepiece_open(const char *bytes, size_t n_bytes, char *why,
                                                   size_t size);
void text_sentencepiece_close(struct text_sentencepiece *model);
/* Calls `take` with the ids. Returns its result, or -1 if the library fails. */
int text_sentencepiece_encode(const struct text_sentencepiece *model, const char *text,
                              size_t n_bytes, int (*take)(void *self, const int *ids, size_t n),
                              void *self);
int text_sentencepiece_n(const struct text_sentencepiece *model);
/* True if words that are encoded one by one, each with a blank put before it by the library, give
 * the ids of the text, which has one blank between two words:
 *   - the library puts a blank before a text;
 *   - the blank is a piece, and no piece has one behind another letter, so none spans two words;
 *   - scores are whole numbers, so that their sums do not depend on where they begin.
 * Models of BPE are so unless they were trained across blanks. */
bool text_sentencepiece_by_words(const struct text_sentencepiece *model);
/* Returns the piece of an id, with U+2581 for blanks; borrowed. */
const char *text_sentencepiece_piece(const struct text_sentencepiece *model, int id, size_t *n);

/* True if the model chooses the one best segmentation by the sum of scores (unigram). */
bool text_sentencepiece_is_unigram(const struct text_sentencepiece *model);
/* True if the model's normaliser leaves every visible ASCII letter, and every pair of them,
 * unchanged. Rules for three or more such letters, which no normaliser of the library has, would
 * not be noticed. */
bool text_sentencepiece_keeps_ascii(const struct text_sentencepiece *model);
/* Calls `take` with the text as the model normalises it, with U+2581 for blanks. Returns its
 * result, or -1 if the library fails. */
int text_sentencepiece_normal(const struct text_sentencepiece *model, const char *text,
                              size_t n_bytes, int (*take)(void *self, const char *normal, size_t n),
                              void *self);

/* words.c: reads the merges of the pieces of a BPE model that can be encoded by words. by_merges is
 * set if the library merges in that order: scores fall from id to id, no piece is a user-defined
 * symbol that is cut out first, and ASCII is not changed. */
int text_read_pieces(struct ifl_tokenizer *tokenizer, struct ifl_error *error);
double text_sentencepiece_score(const struct text_sentencepiece *model, int id);
bool text_sentencepiece_is_unused(const struct text_sentencepiece *model, int id);
enum text_piece { TEXT_PIECE_TEXT, TEXT_PIECE_CONTROL, TEXT_PIECE_UNKNOWN, TEXT_PIECE_BYTE };
enum text_piece text_sentencepiece_kind(const struct text_sentencepiece *model, int id);
/* True if the model puts a blank before a text, and drops it when it turns ids into a text. */
bool text_sentencepiece_drops_blank(const struct text_sentencepiece *model);
int text_sentencepiece_begin(const struct text_sentencepiece *model); /* id of the token at the
                                                                         beginning; -1: none */

/* ---- trie.c: texts by their bytes ---- */

struct text_edge {
    uint32_t key, to; /* node << 8 | byte */
};

struct text_node {
    double score;
    uint32_t id; /* TEXT_NO_ID: no text ends here */
};

struct text_trie {
    struct text_edge *edges; /* [n_slots], of nodes other than the root */
    size_t n_slots;
    uint32_t first[256]; /* edges of the root; 0: none */
    struct text_node *nodes;
    size_t n, cap;
};

int text_trie_add(struct text_trie *trie, const char *text, size_t n, uint32_t id, double score,
                  struct ifl_error *error);
/* Returns the node that the edge of a letter leads to; 0: there is no such edge. The root is node
 * 0. */
uint32_t text_trie_next(const struct text_trie *trie, uint32_t node, char letter);
void text_trie_free(struct text_trie *trie);

/* ---- unigram.c: texts by a unigram model of SentencePiece ---- */

struct text_unigram {
    struct text_trie trie; /* trie of pieces, with a blank for U+2581 */
    uint32_t unknown;
    float unknown_score;
    uint32_t n_bytes, id_of_byte[256]; /* ids of bytes that stand for an unknown letter; n_bytes 0:
                                          there are none */
    bool joins[128]; /* any number of these letters between two visible letters is one blank */
    bool keeps[128]; /* letters that the normal text has as they are */
};

struct text_unigram_room { /* of an encoder */
    struct text_best *best;
    char *normal;
    size_t cap_best, n_normal, cap_normal;
};

/* Reads a unigram model. tokenizer->unigram stays NULL if the model is of another kind, or has
 * features that only its library handles: pieces across blanks, user-defined symbols, bytes, rules
 * for ASCII letters. */
int text_read_unigram(struct ifl_tokenizer *tokenizer, struct ifl_error *error);
void text_unigram_free(struct text_unigram *unigram);
/* Appends the ids and returns 1. Returns 0, and appends nothing, if most of the text needs the
 * library. */
int text_unigram_encode(const struct ifl_tokenizer *tokenizer, struct text_unigram_room *room,
                        const char *text, size_t n, struct text_ids *ids, struct ifl_error *error);

/* True for a visible ASCII letter. */
static inline bool text_is_seen(char letter)
{
    return letter > ' ' && letter < 0x7f;
}

/* ---- nfc.c ---- */

enum text_nfc_tables { TEXT_NO_NFC, TEXT_NFC_UNICODE_9, TEXT_NFC };

/* n is 1 or more; *normal is to be freed. */
int text_nfc(const char *text, size_t n, enum text_nfc_tables tables, char **normal,
             size_t *n_normal, struct ifl_error *error);

/* ---- the tokenizer ---- */

enum text_stage_kind {
    TEXT_ISOLATE, /* matches are pieces, and so are the parts between them */
    TEXT_KEEP,    /* only matches are pieces */
    TEXT_REMOVE,  /* only the parts between matches are pieces */
    TEXT_PREFIX   /* a blank is put before a piece that does not begin with one */
};

struct text_stage {
    enum text_stage_kind kind;
    pcre2_code *code; /* pattern of the stage; not for TEXT_PREFIX */
};

struct ifl_tokenizer {
    struct text_sentencepiece *sentencepiece; /* NULL: the fields below are used */
    bool by_words;                            /* text_sentencepiece_by_words */
    bool by_merges;     /* plain words need no library: `blank`, vocab and merges are made from its
                           pieces */
    uint32_t blank;     /* id of U+2581 */
    bool merges_blanks; /* plain words may hold several blanks in a row */
    struct text_unigram *unigram; /* NULL: `by_words`, or texts are the library's */
    struct text_added added, added_normalized;
    enum text_nfc_tables nfc;
    struct text_stage stages[TEXT_MAX_STAGES];
    size_t n_stages;
    bool whole_words; /* a word that is in the vocabulary is one token, whatever the merges */
    struct text_vocab vocab;
    struct text_merges merges;
    struct text_extras extras;
    struct ifl_token_frame frame;
    char odd_frame[64]; /* name of an unknown post_processor; "": none */
    uint32_t shift;     /* what is added to ids (Tekken: behind its special tokens) */
    pcre2_code *any;    /* matches everything: checks UTF-8 */
};

/* encode.c: normalises the text. *normal is `text` itself, or memory that the caller frees. */
int text_normal(const struct ifl_tokenizer *tokenizer, const char *text, size_t n, char **normal,
                size_t *n_normal, struct ifl_error *error);
const struct ifl_tokenizer *text_tokenizer_of(const struct ifl_encoder *encoder);
struct text_words; /* of make_text.c */
struct text_words **text_words_of(struct ifl_encoder *encoder);

/* open.c: as ifl_tokenizer_open, from memory. `path` names the file in errors; it also selects the
 * split of a file of ranks. */
int text_open_memory(const char *path, const char *bytes, size_t n_bytes,
                     struct ifl_tokenizer **tokenizer, struct ifl_error *error);

/* A file in memory. */
struct text_file {
    const char *path; /* as errors name it */
    char *bytes;      /* a NUL follows */
    size_t n_bytes;
};

/* ---- hf.c, tekken.c, ranks.c: readers; the tokenizer is zeroed before ---- */

int text_read_hf(const struct text_file *file, const json_t *root, struct ifl_tokenizer *tokenizer,
                 struct ifl_error *error);
/* post.c: reads the post_processor. An unknown post_processor is an error only when the frame is
 * asked for. */
void text_read_frame(const json_t *post_processor, struct ifl_tokenizer *tokenizer);
int text_read_tekken(const struct text_file *file, const json_t *root,
                     struct ifl_tokenizer *tokenizer, struct ifl_error *error);
int text_read_ranks(const struct text_file *file, struct ifl_tokenizer *tokenizer,
                    struct ifl_error *error);
/* Adds a stage with the pattern. */
int text_add_stage(struct ifl_tokenizer *tokenizer, enum text_stage_kind kind, const char *pattern,
                   size_t n_bytes, const char *where, struct ifl_error *error);
/* Completes vocabulary and merges of ranks; shared by tekken.c and ranks.c. */
int text_end_ranks(const struct text_file *file, struct ifl_tokenizer *tokenizer,
                   struct ifl_error *error);

/* base64.c: decodes `text` in RFC 4648's alphabet to `out`, which has 3/4 n + 3 bytes. Returns the
 * number of bytes; -1 if the text is not in that alphabet. */
long text_base64(const char *text, size_t n, char *out);

#endif
