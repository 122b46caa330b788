#include "live/serve_logprobs.h"

#include <jansson.h>
#include <stdlib.h>

#include "base/array.h"

int weighed_add(struct weighed *weighed, int32_t token, const struct ifl_logprobs *logprobs)
{
    if (array_room(&weighed->of, weighed->n, &weighed->cap, 1, sizeof *weighed->of) < 0)
        return IFL_E_NOMEM;
    weighed->of[weighed->n++] = (struct weighed_token){
        token, logprobs != NULL, logprobs ? *logprobs : (struct ifl_logprobs){.n = 0}};
    return 0;
}

void weighed_free(struct weighed *weighed)
{
    free(weighed->of);
    *weighed = (struct weighed){0};
}

/* ---- texts ---- */

/* The token's text by itself. */
static json_t *text_of(const struct served_text *text, int32_t token)
{
    struct text_flow flow = {0};
    struct evbuffer *out = evbuffer_new();
    json_t *string = NULL;
    if (out) {
        evbuffer_add(out, "\"", 1);
        served_text_put(text, &flow, token, true, out);
        served_text_put_end(&flow, out);
        evbuffer_add(out, "\"", 1);
        const size_t n = evbuffer_get_length(out);
        string = json_loadb((const char *)evbuffer_pullup(out, -1), n,
                            JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
        evbuffer_free(out);
    }
    return string ? string : json_string("");
}

static int64_t n_chars(const json_t *string)
{
    const char *text = json_string_value(string);
    int64_t n = 0;
    for (size_t i = 0; i < json_string_length(string); i++)
        n += ((unsigned char)text[i] & 0xc0) != 0x80;
    return n;
}

/* ---- completions ---- */

/* The token first, then the likeliest; a text that is there already is not named twice. */
static json_t *likeliest_by_text(const struct served_text *text, const struct weighed_token *token,
                                 const json_t *own)
{
    json_t *of = json_object();
    json_object_setn_new(of, json_string_value(own), json_string_length(own),
                         json_real(token->logprobs.of_token));
    for (int32_t i = 0; i < token->logprobs.n; i++) {
        json_t *name = text_of(text, token->logprobs.token[i]);
        if (!json_object_getn(of, json_string_value(name), json_string_length(name)))
            json_object_setn_new(of, json_string_value(name), json_string_length(name),
                                 json_real(token->logprobs.of[i]));
        json_decref(name);
    }
    return of;
}

static json_t *of_completion(struct weighed *weighed, const struct served_text *text)
{
    json_t *offsets = json_array(), *values = json_array(), *names = json_array(),
           *likeliest = json_array();
    for (size_t i = 0; i < weighed->n; i++) {
        json_t *own = text_of(text, weighed->of[i].token);
        json_array_append_new(offsets, json_integer(weighed->n_chars));
        const struct weighed_token *token = &weighed->of[i];
        json_array_append_new(values,
                              token->is_known ? json_real(token->logprobs.of_token) : json_null());
        json_array_append_new(likeliest,
                              token->is_known ? likeliest_by_text(text, token, own) : json_null());
        weighed->n_chars += n_chars(own);
        json_array_append_new(names, own);
    }
    return json_pack("{s:o,s:o,s:o,s:o}", "text_offset", offsets, "token_logprobs", values,
                     "tokens", names, "top_logprobs", likeliest);
}

/* ---- chats ---- */

#define NOT_KNOWN (-9999.0) /* as vLLM has it where a chat's token has none */

static json_t *entry(const struct served_text *text, int32_t token, double value)
{
    json_t *name = text_of(text, token), *bytes = json_array();
    for (size_t i = 0; i < json_string_length(name); i++)
        json_array_append_new(bytes, json_integer((unsigned char)json_string_value(name)[i]));
    return json_pack("{s:o,s:f,s:o}", "token", name, "logprob", value, "bytes", bytes);
}

static json_t *of_chat(const struct weighed *weighed, const struct served_text *text)
{
    json_t *content = json_array();
    for (size_t i = 0; i < weighed->n; i++) {
        const struct ifl_logprobs *of = &weighed->of[i].logprobs;
        json_t *one = entry(text, weighed->of[i].token,
                            weighed->of[i].is_known ? of->of_token : NOT_KNOWN),
               *likeliest = json_array();
        for (int32_t k = 0; k < of->n; k++)
            json_array_append_new(likeliest, entry(text, of->token[k], of->of[k]));
        json_object_set_new(one, "top_logprobs", likeliest);
        json_array_append_new(content, one);
    }
    return json_pack("{s:o}", "content", content);
}

static int append(const char *bytes, size_t n, void *out)
{
    return evbuffer_add(out, bytes, n);
}

void weighed_put(struct weighed *weighed, const struct served_text *text, bool chat,
                 struct evbuffer *out)
{
    json_t *all = chat ? of_chat(weighed, text) : of_completion(weighed, text);
    json_dump_callback(all, append, out, JSON_COMPACT);
    json_decref(all);
    weighed->n = 0;
}
