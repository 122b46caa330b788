/* Exact tokenizers: the ids that a model's own tokenizer gives a text.
 *
 * A tokenizer is read from the file that comes with the model, plain or gzipped. The contents show
 * its kind:
 *
 *   tokenizer.json   byte-level BPE of Hugging Face's `tokenizers`, as of GPT-2, Llama 3 and Qwen
 *   tekken.json      Mistral's Tekken
 *   NAME.tiktoken    ranks of tiktoken, a token in base64 and its rank a line. The file does not
 *                    say how texts are split before BPE. The beginning of its name does: r50k_base,
 *                    p50k_base, cl100k_base, o200k_base, llama3 or qwen
 *   tokenizer.model  SentencePiece, unigram or BPE
 *
 * or from a folder with one of tokenizer.json, tekken.json and tokenizer.model, in this order. If a
 * file has a setting that this reader does not support, the error names the setting. Texts are
 * encoded as they are, without tokens before or after them; ifl_tokenizer_frame returns those that
 * servers add. Added tokens (`<|im_start|>`) of a tokenizer.json are found in texts, as in
 * `tokenizers`; special tokens of the other kinds are not, as in `tiktoken` (encode_ordinary) and
 * `sentencepiece`.
 *
 * Without Meson's feature `tokenizers` these functions exist, and ifl_tokenizer_open always fails.
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

/* Sets the function that loads SentencePiece's library, a module, for the first model of that kind.
 * Called before a tokenizer is opened, or not at all if the library is linked, as in tests. */
void ifl_tokenizer_modules(ifl_module_load_fn *load);

/* Reads a tokenizer; the caller closes it. IFL_E_INPUT if it cannot be read, is damaged, or has an
 * unsupported setting; the error names the file. *tokenizer is NULL after an error. */
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

/* Makes a text of exactly n_tokens tokens: English-looking words of one token each. The word at
 * each place is drawn by (seed, place) alone, so texts of one seed begin alike. The caller frees
 * *text, which ends with a NUL. IFL_E_INPUT if the tokenizer has no such words. */
int ifl_encoder_make_text(struct ifl_encoder *encoder, size_t n_tokens, uint64_t seed, char **text,
                          struct ifl_error *error);

/* Ids of words of small letters that are one token together with the blank before them, in any
 * context; *ids is the encoder's. IFL_E_INPUT if the tokenizer has no such words. */
int ifl_encoder_words(struct ifl_encoder *encoder, const uint32_t **ids, size_t *n_ids,
                      struct ifl_error *error);

/* ---- what servers put around a text ---- */

enum { IFL_FRAME_TOKENS = 8 };

struct ifl_token_frame {
    uint32_t before[IFL_FRAME_TOKENS], behind[IFL_FRAME_TOKENS];
    size_t n_before, n_behind;
};

/* Tokens that a server's add_special_tokens puts around a text: those of the post_processor of a
 * tokenizer.json; the token for the beginning of a tekken.json and of a tokenizer.model that has
 * one; none for a file of ranks. IFL_E_INPUT if the kind of post_processor is not supported. */
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

/* The text of a token that follows others. It includes a blank that SentencePiece drops at the
 * beginning of a text. */
struct ifl_token_text ifl_decoder_token(const struct ifl_decoder *decoder, uint32_t id);
/* True for models of SentencePiece that put a blank before a text. */
bool ifl_decoder_drops_blank(const struct ifl_decoder *decoder);

#endif
