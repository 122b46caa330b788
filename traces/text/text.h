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

/* Adds a token. Of two with the same bytes the id of the later one counts. */
int text_vocab_add(struct text_vocab *vocab, const char *bytes, size_t n_bytes, uint32_t id,
                   struct ifl_error *error);
/* After the last one is added. Tokens of one byte must all be there: the first byte without is
 * *missing, and the result 1. */
int text_vocab_end(struct text_vocab *vocab, unsigned *missing);
uint32_t text_vocab_find(const struct text_vocab *vocab, const char *bytes, size_t n_bytes);
void text_vocab_free(struct text_vocab *vocab);

/* 64 bits of n bytes. */
uint64_t text_hash(const char *bytes, size_t n_bytes);

/* ---- merges.c: which two tokens become which one, and how early ---- */

struct text_merge {
    uint64_t pair; /* left id << 32 | right id; all ones: empty */
    uint32_t rank, id;
};

struct text_merges {
    struct text_merge *slots;
    size_t n, n_slots; /* a power of two */
};

int text_merges_begin(struct text_merges *merges, size_t n_expected, struct ifl_error *error);
/* A pair that is there already takes the later rank, as in `tokenizers`. */
int text_merges_add(struct text_merges *merges, uint32_t left, uint32_t right, uint32_t rank,
                    uint32_t id, struct ifl_error *error);
/* All pairs of tokens that are a token when joined; its id is the rank: what tiktoken looks up as
 * it merges. */
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
/* The table of short words that were seen: true if this one is there. The ids are its. */
bool text_bpe_known(struct text_bpe *bpe, const char *word, size_t n_bytes, const uint32_t **ids,
                    size_t *n_ids);
/* Puts it there, if it is short. */
void text_bpe_keep(struct text_bpe *bpe, const char *word, size_t n_bytes, const uint32_t *ids,
                   size_t n_ids);
int text_bpe_open(struct text_bpe *bpe, struct ifl_error *error);
void text_bpe_close(struct text_bpe *bpe);
/* Appends the ids of a word; n_bytes is 1 or more. */
int text_bpe_word(struct text_bpe *bpe, const struct ifl_tokenizer *tokenizer, const char *word,
                  size_t n_bytes, struct text_ids *ids, struct ifl_error *error);

/* 1: appends the ids of a short word of letters that are tokens, behind the token of a blank. 0: it
 * is another one, and nothing is appended. */
int text_bpe_letters(struct text_bpe *bpe, const struct ifl_tokenizer *tokenizer, const char *word,
                     size_t n_bytes, struct text_ids *ids, struct ifl_error *error);

/* ---- pattern.c: regular expressions of `tokenizers` and tiktoken, by PCRE2 ---- */

/* Compiles it with JIT. `where` is what errors call it; the file's name is filled in by the caller.
 * A construct that PCRE2 and Oniguruma do not read alike is IFL_E_INPUT. */
int text_pattern(const char *pattern, size_t n_bytes, const char *where, pcre2_code **code,
                 struct ifl_error *error);
/* One of the splits that tokenizers have without writing it down; NULL: no such name. */
const char *text_split_named(const char *name);

struct text_matcher { /* of an encoder */
    pcre2_match_data *data;
    pcre2_match_context *context;
    pcre2_jit_stack *stack;
};

int text_matcher_open(struct text_matcher *matcher, struct ifl_error *error);
void text_matcher_close(struct text_matcher *matcher);
/* 1: the next match from `from` on is [*begin, *end). 0: there is none. The text is UTF-8. */
int text_match(struct text_matcher *matcher, const pcre2_code *code, const char *text, size_t n,
               size_t from, size_t *begin, size_t *end, struct ifl_error *error);
/* An error that names the byte, if the text is not UTF-8. */
int text_check_utf8(struct text_matcher *matcher, const pcre2_code *any, const char *text, size_t n,
                    struct ifl_error *error);

/* ---- decode.c: texts of ids ---- */

/* Writes n bytes of SentencePiece's with a blank for each TEXT_BLANK: the length. */
size_t text_with_blanks(const char *piece, size_t n, char *text);

/* Ids that are not in the vocabulary. */

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
/* To be called before the others: loads the module, once a program. */
int text_sentencepiece_load(struct ifl_error *error);
/* A text, to be freed by the caller, in *why if it fails; NULL: out of memory. */
struct text_sentencepiece *text_sentencepiece_open(const char *bytes, size_t n_bytes, char *why,
                                                   size_t size);
void text_sentencepiece_close(struct text_sentencepiece *model);
/* Calls `take` with the ids; its result, or -1 if the library fails. */
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
/* The piece, U+2581 for blanks; borrowed. */
const char *text_sentencepiece_piece(const struct text_sentencepiece *model, int id, size_t *n);

/* True if it has one best segmentation by the sum of scores (unigram). */
bool text_sentencepiece_is_unigram(const struct text_sentencepiece *model);
/* True if each seen letter of ASCII, and each two of them, are in the normal text what they are in
 * the text. Rules of a normaliser for three such letters and more, which no normaliser of the
 * library has, would not be noticed. */
bool text_sentencepiece_keeps_ascii(const struct text_sentencepiece *model);
/* Calls `take` with the text as the model normalises it, U+2581 for blanks; its result, or -1 if
 * the library fails. */
int text_sentencepiece_normal(const struct text_sentencepiece *model, const char *text,
                              size_t n_bytes, int (*take)(void *self, const char *normal, size_t n),
                              void *self);

/* words.c: merges of the pieces of a model of BPE that can be encoded by words; by_merges tells
 * whether that is the order in which its library merges: scores fall from id to id, no piece is a
 * symbol of its own that is cut out before, and ASCII is kept as it is. */
int text_read_pieces(struct ifl_tokenizer *tokenizer, struct ifl_error *error);
double text_sentencepiece_score(const struct text_sentencepiece *model, int id);
bool text_sentencepiece_is_unused(const struct text_sentencepiece *model, int id);
enum text_piece { TEXT_PIECE_TEXT, TEXT_PIECE_CONTROL, TEXT_PIECE_UNKNOWN, TEXT_PIECE_BYTE };
enum text_piece text_sentencepiece_kind(const struct text_sentencepiece *model, int id);
/* True if it puts a blank before a text, which it drops where it makes a text of ids. */
bool text_sentencepiece_drops_blank(const struct text_sentencepiece *model);
int text_sentencepiece_begin(const struct text_sentencepiece *model); /* id of it; -1: none */

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
/* The node behind an edge; 0: there is none. The root is 0. */
uint32_t text_trie_next(const struct text_trie *trie, uint32_t node, char letter);
void text_trie_free(struct text_trie *trie);

/* ---- unigram.c: texts by a unigram model of SentencePiece ---- */

struct text_unigram {
    struct text_trie trie; /* of pieces; a blank for U+2581 */
    uint32_t unknown;
    float unknown_score;
    uint32_t n_bytes, id_of_byte[256]; /* of bytes that stand for an unknown letter; 0: none do */
    bool joins[128]; /* letters of which any number, between two that are seen, is one blank */
    bool keeps[128]; /* letters that the normal text has as they are */
};

struct text_unigram_room { /* of an encoder */
    struct text_best *best;
    char *normal;
    size_t cap_best, n_normal, cap_normal;
};

/* Leaves NULL in tokenizer->unigram if the model is of another kind, or has what only its library
 * knows: pieces across blanks, symbols of its own, bytes, rules for letters of ASCII. */
int text_read_unigram(struct ifl_tokenizer *tokenizer, struct ifl_error *error);
void text_unigram_free(struct text_unigram *unigram);
/* 1: appends the ids. 0: most of the text is for the library alone, and nothing is appended. */
int text_unigram_encode(const struct ifl_tokenizer *tokenizer, struct text_unigram_room *room,
                        const char *text, size_t n, struct text_ids *ids, struct ifl_error *error);

/* A letter of ASCII that is seen. */
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
    TEXT_ISOLATE, /* matches are pieces, and what is between them */
    TEXT_KEEP,    /* matches alone */
    TEXT_REMOVE,  /* what is between matches alone */
    TEXT_PREFIX   /* a piece begins with a blank: one is put before it */
};

struct text_stage {
    enum text_stage_kind kind;
    pcre2_code *code; /* not of TEXT_PREFIX */
};

struct ifl_tokenizer {
    struct text_sentencepiece *sentencepiece; /* NULL: all below counts */
    bool by_words;                            /* text_sentencepiece_by_words */
    bool by_merges; /* plain words need no library: `blank`, vocab and merges are of its pieces */
    uint32_t blank; /* id of U+2581 */
    bool merges_blanks;           /* plain words may hold several blanks in a row */
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
    char odd_frame[64]; /* a post_processor that is not known; "": none */
    uint32_t shift;     /* what is added to ids (Tekken: behind its special tokens) */
    pcre2_code *any;    /* matches everything: checks UTF-8 */
};

/* encode.c: the text as the tokenizer normalises it. *normal is `text` itself, or memory that is to
 * be freed. */
int text_normal(const struct ifl_tokenizer *tokenizer, const char *text, size_t n, char **normal,
                size_t *n_normal, struct ifl_error *error);
const struct ifl_tokenizer *text_tokenizer_of(const struct ifl_encoder *encoder);
struct text_words; /* of make_text.c */
struct text_words **text_words_of(struct ifl_encoder *encoder);

/* open.c: ifl_tokenizer_open from memory. `path` is what errors call it, and names the split of a
 * file of ranks. */
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
/* post.c: reads the post_processor; what it does not know is no error until the frame is asked for.
 */
void text_read_frame(const json_t *post_processor, struct ifl_tokenizer *tokenizer);
int text_read_tekken(const struct text_file *file, const json_t *root,
                     struct ifl_tokenizer *tokenizer, struct ifl_error *error);
int text_read_ranks(const struct text_file *file, struct ifl_tokenizer *tokenizer,
                    struct ifl_error *error);
/* Adds a stage that the pattern makes. */
int text_add_stage(struct ifl_tokenizer *tokenizer, enum text_stage_kind kind, const char *pattern,
                   size_t n_bytes, const char *where, struct ifl_error *error);
/* Vocabulary and merges of ranks are whole: what tekken.c and ranks.c share. */
int text_end_ranks(const struct text_file *file, struct ifl_tokenizer *tokenizer,
                   struct ifl_error *error);

/* base64.c. Returns how many bytes `text` is in RFC 4648's alphabet, written to `out` of 3/4 n + 3
 * bytes; -1: it is not. */
long text_base64(const char *text, size_t n, char *out);

#endif
