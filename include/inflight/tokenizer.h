/* Exact tokenizers: the ids that a model's own tokenizer gives a text.
 *
 * A tokenizer is read from the file that comes with the model, plain or gzipped; its kind is seen
 * in its contents:
 *
 *   tokenizer.json   byte-level BPE of Hugging Face's `tokenizers`, as of GPT-2, Llama 3 and Qwen
 *   tekken.json      Mistral's Tekken
 *   NAME.tiktoken    ranks of tiktoken, a token in base64 and its rank a line. The file does not
 *                    say how texts are split, so its name does, which begins with r50k_base,
 *                    p50k_base, cl100k_base, o200k_base, llama3 or qwen
 *   tokenizer.model  SentencePiece, unigram or BPE
 *
 * or from a folder with one of tokenizer.json, tekken.json and tokenizer.model, in this order. What
 * such a file may say and this reader does not know is refused by name. Texts are encoded as they
 * stand: no token is put in front of them or behind; ifl_tokenizer_frame says which ones servers
 * put. Added tokens (`<|im_start|>`) of a tokenizer.json are found in texts, as `tokenizers` does;
 * special tokens of the other kinds are not, as `tiktoken` (encode_ordinary) and `sentencepiece` do
 * not.
 *
 * Without Meson's feature `tokenizers` all of this is there, and ifl_tokenizer_open always fails.
 *
 * Functions return 0, or a negative code with the error filled in. No pointer may be NULL. */
#ifndef INFLIGHT_TOKENIZER_H
#define INFLIGHT_TOKENIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "inflight/module.h"

struct ifl_tokenizer; /* opaque; never changes, so that threads share it */
struct ifl_encoder; /* opaque; for one thread at a time: its buffers and the words that it has seen
                     */

/* SentencePiece's library is a module, which `load` gives with the first model of that kind. Called
 * before a tokenizer is opened, or not at all where the library is linked, as in tests. */
void ifl_tokenizer_modules(ifl_module_load_fn *load);

/* Reads a tokenizer; the caller closes it. IFL_E_INPUT if it cannot be read, is damaged, or says
 * what is not known here; the error names the file. *tokenizer is NULL after an error. */
int ifl_tokenizer_open(const char *path, struct ifl_tokenizer **tokenizer, struct ifl_error *error);
void ifl_tokenizer_close(struct ifl_tokenizer *tokenizer); /* NULL is allowed */

/* An encoder borrows its tokenizer; the caller closes it first. Fails only with IFL_E_NOMEM. */
int ifl_encoder_open(const struct ifl_tokenizer *tokenizer, struct ifl_encoder **encoder,
                     struct ifl_error *error);
void ifl_encoder_close(struct ifl_encoder *encoder); /* NULL is allowed */

/* The ids of n_bytes of UTF-8, NULs included; *ids is the encoder's until its next call.
 * IFL_E_INPUT, without a file, if the text is not UTF-8, has 2^30 bytes or more, or is one on which
 * the tokenizer's pattern gives up. */
int ifl_encode(struct ifl_encoder *encoder, const char *text, size_t n_bytes, const uint32_t **ids,
               size_t *n_ids, struct ifl_error *error);

/* Makes a text that has exactly n_tokens tokens, of English-looking words, each a token of its own:
 * the word at each place is drawn by (seed, place) alone, so texts of one seed begin alike. The
 * caller frees *text, which ends with a NUL. IFL_E_INPUT if the tokenizer has no such words. */
int ifl_encoder_make_text(struct ifl_encoder *encoder, size_t n_tokens, uint64_t seed, char **text,
                          struct ifl_error *error);

/* Ids of words of small letters that are a token each with the blank in front of them, whatever
 * stands before and behind; *ids is the encoder's. IFL_E_INPUT if the tokenizer has no such words.
 */
int ifl_encoder_words(struct ifl_encoder *encoder, const uint32_t **ids, size_t *n_ids,
                      struct ifl_error *error);

/* ---- what servers put around a text ---- */

enum { IFL_FRAME_TOKENS = 8 };

struct ifl_token_frame {
    uint32_t before[IFL_FRAME_TOKENS], behind[IFL_FRAME_TOKENS];
    size_t n_before, n_behind;
};

/* Tokens that a server's add_special_tokens puts around a text: what the post_processor of a
 * tokenizer.json says, the token of the beginning of a tekken.json and of a tokenizer.model that
 * has one, none of ranks. IFL_E_INPUT if a post_processor is of a kind that is not known here. */
int ifl_tokenizer_frame(const struct ifl_tokenizer *tokenizer, struct ifl_token_frame *frame,
                        struct ifl_error *error);

/* ---- ids to text ---- */

struct ifl_decoder; /* opaque; never changes, so that threads share it */

/* A decoder borrows its tokenizer; the caller closes it first. */
int ifl_decoder_open(const struct ifl_tokenizer *tokenizer, struct ifl_decoder **decoder,
                     struct ifl_error *error);
void ifl_decoder_close(struct ifl_decoder *decoder); /* NULL is allowed */

struct ifl_token_text {
    const char *bytes; /* UTF-8, or a part of a character; the decoder's. NULL: no such id */
    size_t n_bytes;
    bool is_special;  /* answers leave it out (skip_special_tokens) */
    const char *name; /* of a piece of SentencePiece, UTF-8; else NULL */
    size_t n_name;
};

/* The text of a token behind others: a blank at the beginning of a text, which SentencePiece leaves
 * out there, is not left out. */
struct ifl_token_text ifl_decoder_token(const struct ifl_decoder *decoder, uint32_t id);
/* True of models of SentencePiece that put a blank before a text. */
bool ifl_decoder_drops_blank(const struct ifl_decoder *decoder);

#endif
