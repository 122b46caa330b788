#include "live/serve_tokenizer.h"

#include <string.h>

#include "inflight/minmax.h"

/* ChatML, as Qwen and many others have it. */
static const char chatml_message[] = "<|im_start|>{role}\n{content}<|im_end|>\n",
                  chatml_turn[] = "<|im_start|>assistant\n", chatml_begin[] = "<|im_start|>";

/* ---- opening and closing ---- */

static const char *message_form(const struct served_text *text)
{
    return *text->chat->message ? text->chat->message : chatml_message;
}

/* Forms that the configuration leaves open are ChatML's, where the tokenizer has their token. */
static int look_for_chatml(struct served_text *text, struct ifl_error *error)
{
    const uint32_t *ids;
    size_t n;
    const int rc =
        ifl_encode(text->encoder, chatml_begin, sizeof chatml_begin - 1, &ids, &n, error);
    if (rc == 0 && n != 1 && !*text->chat->message)
        snprintf(text->no_chat, sizeof text->no_chat,
                 "The tokenizer has no token <|im_start|>, and live.chat.message does not say how "
                 "messages are written: a chat template is needed. (parameter=messages)");
    return rc;
}

int served_text_open(struct served_text *text, const struct config *config, struct ifl_error *error)
{
    const char *path = config->workload.tokenizer, *slash = strrchr(path, '/');
    text->chat = &config->live.chat;
    text->name = "four bytes of text are a token";
    if (!*path)
        return 0;
    text->name = slash ? slash + 1 : path;
    int rc = ifl_tokenizer_open(path, &text->tokenizer, error);
    if (rc == 0)
        rc = ifl_encoder_open(text->tokenizer, &text->encoder, error);
    if (rc == 0)
        rc = ifl_decoder_open(text->tokenizer, &text->decoder, error);
    if (rc == 0)
        rc = ifl_tokenizer_frame(text->tokenizer, &text->frame, error);
    if (rc == 0)
        rc = ifl_encoder_words(text->encoder, &text->words, &text->n_words, error);
    if (rc == 0)
        rc = look_for_chatml(text, error);
    if (rc == 0 && *text->chat->message && !strstr(text->chat->message, "{content}"))
        rc = ifl_fail(error, IFL_E_INPUT,
                      "live.chat.message has no {content}, expected it where the text stands");
    return rc < 0 ? ifl_blame_file(error, path) : 0;
}

void served_text_close(struct served_text *text)
{
    ifl_decoder_close(text->decoder);
    ifl_encoder_close(text->encoder);
    ifl_tokenizer_close(text->tokenizer);
    *text = (struct served_text){0};
}

/* ---- a text ---- */

static int add_ids(struct tokens *tokens, const uint32_t *ids, size_t n)
{
    int rc = 0;
    for (size_t i = 0; i < n && rc == 0; i++)
        rc = tokens_add(tokens, (int32_t)ids[i]);
    return rc;
}

int served_text_add(const struct served_text *text, const char *bytes, size_t n_bytes, bool framed,
                    struct tokens *tokens, struct ifl_error *error)
{
    const struct ifl_token_frame *frame = &text->frame;
    const uint32_t *ids;
    size_t n;
    if (!text->tokenizer)
        return tokens_add_text(tokens, bytes, n_bytes);
    if (ifl_encode(text->encoder, bytes, n_bytes, &ids, &n, error) < 0)
        return error->code;
    int rc = framed ? add_ids(tokens, frame->before, frame->n_before) : 0;
    if (rc == 0)
        rc = add_ids(tokens, ids, n);
    return rc == 0 && framed ? add_ids(tokens, frame->behind, frame->n_behind) : rc;
}

bool served_text_knows(const struct served_text *text, int64_t id)
{
    return id >= 0 && id <= INT32_MAX &&
           (!text->decoder || ifl_decoder_token(text->decoder, (uint32_t)id).bytes);
}

/* ---- a chat ---- */

static int put(struct served_chat *chat, const char *bytes, size_t n)
{
    return evbuffer_add(chat->written, bytes, n) == 0 ? 0 : IFL_E_NOMEM;
}

/* A part of a form, from `begin` to `end`, with the role in place of its name. */
static int put_form(struct served_chat *chat, const char *begin, const char *end, const char *role)
{
    static const char name[] = "{role}";
    int rc = 0;
    while (begin < end && rc == 0) {
        const char *at = strstr(begin, name);
        const char *until = at && at < end ? at : end;
        rc = put(chat, begin, (size_t)(until - begin));
        begin = until;
        if (rc == 0 && begin < end) {
            rc = put(chat, role, strlen(role));
            begin += sizeof name - 1;
        }
    }
    return rc;
}

int served_chat_begin(struct served_chat *chat)
{
    if (!chat->text->tokenizer)
        return 0;
    chat->written = evbuffer_new();
    const char *begin = chat->text->chat->begin;
    return chat->written ? put(chat, begin, strlen(begin)) : IFL_E_NOMEM;
}

int served_chat_message(struct served_chat *chat, const char *role)
{
    const char *form = message_form(chat->text);
    chat->has_part = false;
    return chat->written ? put_form(chat, form, strstr(form, "{content}"), role) : 0;
}

int served_chat_part(struct served_chat *chat, const char *role, const char *bytes, size_t n_bytes)
{
    if (!chat->written)
        return tokens_add_message(chat->tokens, role, bytes, n_bytes);
    const bool goes_on = chat->has_part;
    chat->has_part = true;
    return goes_on && put(chat, "\n", 1) < 0 ? IFL_E_NOMEM : put(chat, bytes, n_bytes);
}

int served_chat_message_end(struct served_chat *chat, const char *role)
{
    const char *form = message_form(chat->text);
    return chat->written ? put_form(chat, strstr(form, "{content}") + sizeof "{content}" - 1,
                                    form + strlen(form), role)
                         : 0;
}

int served_chat_turn(struct served_chat *chat)
{
    const struct live_chat *forms = chat->text->chat;
    const char *turn = *forms->message ? forms->turn : chatml_turn;
    return chat->written ? put(chat, turn, strlen(turn)) : tokens_add_turn(chat->tokens);
}

int served_chat_end(struct served_chat *chat, struct ifl_error *error)
{
    if (!chat->written)
        return 0;
    const size_t n = evbuffer_get_length(chat->written);
    const char *bytes = (const char *)evbuffer_pullup(chat->written, -1);
    return served_text_add(chat->text, bytes ? bytes : "", n, false, chat->tokens, error);
}

void served_chat_free(struct served_chat *chat)
{
    if (chat->written)
        evbuffer_free(chat->written);
    chat->written = NULL;
}

/* ---- an answer ---- */

static void put_in_json(const unsigned char *bytes, size_t n, struct evbuffer *out)
{
    static const char escaped[] = "\"\\\b\f\n\r\t", letters[] = "\"\\bfnrt";
    const char *at = n == 1 && *bytes ? strchr(escaped, *bytes) : NULL;
    if (at) {
        const char both[2] = {'\\', letters[at - escaped]};
        evbuffer_add(out, both, 2);
    } else if (n == 1 && *bytes < ' ') {
        evbuffer_add_printf(out, "\\u%04x", *bytes);
    } else {
        evbuffer_add(out, bytes, n);
    }
}

static void put_unknown(struct text_flow *flow, struct evbuffer *out)
{
    evbuffer_add(out, "\xef\xbf\xbd", 3); /* U+FFFD */
    flow->n = 0;
}

/* Bytes of the character that this one begins; 0: none does (Unicode 15.0, table 3-7). */
static unsigned length_of(unsigned char first)
{
    return first < 0x80                     ? 1
           : first >= 0xc2 && first <= 0xdf ? 2
           : (first & 0xf0) == 0xe0         ? 3
           : first >= 0xf0 && first <= 0xf4 ? 4
                                            : 0;
}

static bool goes_on(const struct text_flow *flow, unsigned char byte)
{
    const unsigned char first = flow->held[0];
    const unsigned char least = flow->n > 1     ? 0x80
                                : first == 0xe0 ? 0xa0
                                : first == 0xf0 ? 0x90
                                                : 0x80;
    const unsigned char most = flow->n > 1     ? 0xbf
                               : first == 0xed ? 0x9f
                               : first == 0xf4 ? 0x8f
                                               : 0xbf;
    return byte >= least && byte <= most;
}

static void put_byte(struct text_flow *flow, unsigned char byte, struct evbuffer *out)
{
    if (flow->n > 0 && !goes_on(flow, byte))
        put_unknown(flow, out);
    flow->held[flow->n++] = byte;
    const unsigned length = length_of(flow->held[0]);
    if (length == 0) {
        put_unknown(flow, out);
    } else if (flow->n == length) {
        put_in_json(flow->held, length, out);
        flow->n = 0;
    }
}

void served_text_put(const struct served_text *text, struct text_flow *flow, int32_t token,
                     bool keeps_special, struct evbuffer *out)
{
    char word[TOKEN_TEXT_BYTES];
    if (!text->decoder) {
        token_text(token, word);
        evbuffer_add(out, word, TOKEN_TEXT_BYTES - 1);
        return;
    }
    const struct ifl_token_text of = ifl_decoder_token(text->decoder, (uint32_t)token);
    for (size_t i = 0; i < of.n_bytes && (keeps_special || !of.is_special); i++)
        put_byte(flow, (unsigned char)of.bytes[i], out);
}

void served_text_put_end(struct text_flow *flow, struct evbuffer *out)
{
    if (flow->n > 0)
        put_unknown(flow, out);
}

void served_text_put_whole(const struct served_text *text, const struct tokens *tokens,
                           struct evbuffer *out)
{
    struct text_flow flow = {0};
    bool drops_blank = text->decoder && ifl_decoder_drops_blank(text->decoder);
    for (size_t i = 0; i < tokens->n; i++) {
        const struct ifl_token_text of =
            text->decoder ? ifl_decoder_token(text->decoder, (uint32_t)tokens->of[i])
                          : (struct ifl_token_text){0};
        const size_t n_dropped = drops_blank && of.n_bytes > 0 && of.bytes[0] == ' ';
        if (!text->decoder)
            served_text_put(text, &flow, tokens->of[i], true, out);
        for (size_t k = n_dropped; k < of.n_bytes; k++)
            put_byte(&flow, (unsigned char)of.bytes[k], out);
        drops_blank = drops_blank && of.n_bytes == 0;
    }
    served_text_put_end(&flow, out);
}

/* ---- a token's name ---- */

/* GPT-2's letters (src/encoder.py, bytes_to_unicode): bytes that are seen stand for themselves, the
 * others for letters from 256 on. */
static unsigned letter_of(unsigned byte)
{
    unsigned n_others = 0;
    for (unsigned b = 0; b <= byte; b++) {
        const bool is_own = (b >= 33 && b <= 126) || (b >= 161 && b != 173);
        if (b == byte)
            return is_own ? byte : 256 + n_others;
        n_others += !is_own;
    }
    return 0;
}

static size_t put_letter(unsigned letter, char *to)
{
    if (letter < 0x80) {
        to[0] = (char)letter;
        return 1;
    }
    to[0] = (char)(0xc0 | letter >> 6);
    to[1] = (char)(0x80 | (letter & 0x3f));
    return 2;
}

json_t *served_text_name(const struct served_text *text, int32_t token)
{
    char word[TOKEN_TEXT_BYTES], name[4096];
    size_t n = 0;
    if (!text->decoder) {
        token_text(token, word);
        return json_string(word);
    }
    const struct ifl_token_text of = ifl_decoder_token(text->decoder, (uint32_t)token);
    if (of.name)
        return json_stringn(of.name, of.n_name);
    for (size_t i = 0; i < of.n_bytes && n + 2 <= sizeof name; i++)
        n += put_letter(letter_of((unsigned char)of.bytes[i]), name + n);
    return json_stringn(name, n);
}
