#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "base/tree.h"
#include "inflight/random.h"
#include "inflight/time.h"

struct sample {
    int32_t seqs, fate;
    double share;
    bool on;
    int64_t wait_ns;
    uint64_t seed;
    char name[8];
};

static const struct ifl_param fields[] = {
    {"seqs", IFL_INT, offsetof(struct sample, seqs), 4, 1, 8, NULL, "sequences", ""},
    {"fate", IFL_CHOICE, offsetof(struct sample, fate), 1, 0, 0, "recompute|swap|never", "", ""},
    {"share", IFL_REAL, offsetof(struct sample, share), 0.5, 0, 1, NULL, "", ""},
    {"on", IFL_BOOL, offsetof(struct sample, on), 1, 0, 1, NULL, "", ""},
    {"wait_s", IFL_TIME, offsetof(struct sample, wait_ns), 0.25, 0, 1e9, NULL, "s", ""},
    {"seed", IFL_COUNT, offsetof(struct sample, seed), 7, 0, INFINITY, NULL, "", ""},
    {"name", IFL_TEXT, offsetof(struct sample, name), 0, 0, 8, "anon", "", ""},
};
enum { N_FIELDS = sizeof fields / sizeof *fields };

static int read_text(const char *text, struct sample *sample, struct ifl_error *error)
{
    struct node *root;
    cr_assert_eq(tree_parse(text, strlen(text), "f.yaml", &root, error), 0, "%s", error->text);
    const int code = fields_read(root, "a.b", fields, N_FIELDS, NULL, sample, error);
    tree_free(root);
    return code;
}

static void expect_wrong(const char *text, const char *message)
{
    struct sample sample;
    struct ifl_error error = {0};
    cr_expect_eq(read_text(text, &sample, &error), IFL_E_INPUT, "accepted: %s", text);
    cr_expect_str_eq(error.text, message, "%s", error.text);
    cr_expect_eq(error.line, 1);
    cr_expect_str_eq(error.file, "f.yaml");
}

Test(fields, defaults_come_from_the_table)
{
    struct sample sample;
    struct ifl_error error = {0};
    memset(&sample, 0xaa, sizeof sample);
    cr_assert_eq(fields_read(NULL, "", fields, N_FIELDS, NULL, &sample, &error), 0);
    cr_expect_eq(sample.seqs, 4);
    cr_expect_eq(sample.fate, 1);
    cr_expect_eq(sample.share, 0.5);
    cr_expect(sample.on);
    cr_expect_eq(sample.wait_ns, 250000000);
    cr_expect_eq(sample.seed, 7);
    cr_expect_arr_eq(sample.name, "anon\0\0\0", 8);
}

Test(fields, values_replace_defaults_and_null_restores_them)
{
    struct sample sample;
    struct ifl_error error = {0};
    cr_assert_eq(read_text("{seqs: 8, fate: never, share: 1e-3, on: false, wait_s: 1.5, "
                           "seed: 18446744073709551615, name: '7'}",
                           &sample, &error),
                 0);
    cr_expect_eq(sample.seqs, 8);
    cr_expect_eq(sample.fate, 2);
    cr_expect_eq(sample.share, 0.001);
    cr_expect_not(sample.on);
    cr_expect_eq(sample.wait_ns, 1500000000);
    cr_expect_eq(sample.seed, UINT64_MAX);
    cr_expect_str_eq(sample.name, "7");
    cr_assert_eq(read_text("{seqs: null, fate: ~, share: , name: null}", &sample, &error), 0);
    cr_expect_eq(sample.seqs, 4);
    cr_expect_eq(sample.fate, 1);
    cr_expect_str_eq(sample.name, "anon");
}

Test(fields, wrong_values_say_what_was_found_and_what_was_expected)
{
    static const char *const seqs = "expected a whole number from 1 to 8 sequences";
    static const struct {
        const char *text, *found;
    } numbers[] = {{"seqs: 9", "9"},        {"seqs: 0", "0"},
                   {"seqs: four", "four"},  {"seqs: 4.0", "4.0"},
                   {"seqs: 0x4", "0x4"},    {"seqs: 1e0", "1e0"},
                   {"seqs: [4]", "a list"}, {"seqs: {a: 4}", "a map"},
                   {"seqs: 4 5", "4 5"},    {"seqs: 99999999999999999999", "99999999999999999999"}};
    char message[256];
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        snprintf(message, sizeof message, "a.b.seqs is %s, %s", numbers[i].found, seqs);
        expect_wrong(numbers[i].text, message);
    }
    expect_wrong("seqs: \"4\"", "a.b.seqs is \"4\", expected a whole number from 1 to 8 sequences; "
                                "quotes make it text");
    expect_wrong("seqs: 04", "a.b.seqs is 04, expected a whole number from 1 to 8 sequences; no "
                             "leading zeros");
    expect_wrong("share: .nan", "a.b.share is .nan, expected a number from 0 to 1");
    expect_wrong("share: nan", "a.b.share is nan, expected a number from 0 to 1");
    expect_wrong("share: .inf", "a.b.share is .inf, expected a number from 0 to 1");
    expect_wrong("share: 1e999", "a.b.share is 1e999, expected a number from 0 to 1");
    expect_wrong("share: -0.1", "a.b.share is -0.1, expected a number from 0 to 1");
    expect_wrong("share: 0x1p-1", "a.b.share is 0x1p-1, expected a number from 0 to 1");
    expect_wrong("share: .", "a.b.share is ., expected a number from 0 to 1");
    expect_wrong("share: 1e", "a.b.share is 1e, expected a number from 0 to 1");
    expect_wrong("wait_s: -1", "a.b.wait_s is -1, expected a number from 0 to 1000000000 s");
    expect_wrong(
        "wait_s: 1e-12",
        "a.b.wait_s is 1e-12, expected a number from 0 to 1000000000 s; a time that is not "
        "0 is at least 1e-9 s");
    expect_wrong(
        "wait_s: '1e-12'",
        "a.b.wait_s is \"1e-12\", expected a number from 0 to 1000000000 s; quotes make it "
        "text");
    expect_wrong("seed: -1", "a.b.seed is -1, expected a whole number from 0 to 2^64 - 1");
    expect_wrong("seed: 18446744073709551616", "a.b.seed is 18446744073709551616, expected a whole "
                                               "number from 0 to 2^64 - 1");
    expect_wrong("name: 12345678", "a.b.name is 12345678, expected text of at most 7 bytes");
    expect_wrong("name: [a]", "a.b.name is a list, expected text of at most 7 bytes");
}

Test(fields, only_true_and_false_are_booleans)
{
    static const char *const words[] = {"yes", "no", "on", "off", "Yes", "OFF"};
    char text[32], message[128];
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        snprintf(text, sizeof text, "on: %s", words[i]);
        snprintf(message, sizeof message,
                 "a.b.on is %s, expected true or false; yes, no, on and off are only words here",
                 words[i]);
        expect_wrong(text, message);
    }
    expect_wrong("on: 1", "a.b.on is 1, expected true or false");
    expect_wrong("on: True", "a.b.on is True, expected true or false");
    expect_wrong("on: \"true\"", "a.b.on is \"true\", expected true or false; quotes make it text");
}

Test(fields, misspelt_words_get_a_suggestion)
{
    expect_wrong("fate: swpa",
                 "a.b.fate is swpa, expected one of recompute, swap, never; did you mean swap?");
    expect_wrong("fate: drop", "a.b.fate is drop, expected one of recompute, swap, never");
    expect_wrong("shrae: 1", "unknown key a.b.shrae, did you mean share?");
    expect_wrong("bandwidth: 1",
                 "unknown key a.b.bandwidth, expected one of seqs, fate, share, on, "
                 "wait_s, seed, name");
}

Test(fields, messages_stay_on_one_line)
{
    expect_wrong("seqs: \"4\\n5\"", "a.b.seqs is \"4?5\", expected a whole number from 1 to 8 "
                                    "sequences; quotes make it text");
}

Test(fields, a_default_of_nan_means_required)
{
    static const struct ifl_param required[] = {{"share", IFL_REAL, 0, NAN, 0, 1, NULL, "", ""}};
    double share;
    struct ifl_error error = {0};
    cr_expect_eq(fields_read(NULL, "", required, 1, NULL, &share, &error), IFL_E_INPUT);
    cr_expect_str_eq(error.text, "share is missing, expected a number from 0 to 1");
}

static void expect_round_trip(const struct ifl_param *field, const void *value, size_t n_bytes)
{
    char text[8192], back[512] = {0};
    struct node *node;
    struct ifl_error error = {0};
    field_print(field, value, text, sizeof text);
    cr_assert_eq(tree_parse(text, strlen(text), "value", &node, &error), 0, "%s: %s", text,
                 error.text);
    cr_assert_eq(field_read(node, "", field, back, &error), 0, "%s: %s", text, error.text);
    cr_expect_arr_eq(back, value, n_bytes, "%s", text);
    tree_free(node);
}

Test(fields, reals_read_back_as_the_same_bits)
{
    static const struct ifl_param field = {"x", IFL_REAL, 0, 0, -INFINITY, INFINITY, NULL, "", ""};
    char text[64];
    for (uint64_t i = 0; i < 20000; i++) {
        const uint64_t bits = ifl_draw(1, IFL_DRAW_POLICY, i, 0);
        double value;
        memcpy(&value, &bits, sizeof value);
        if (isfinite(value))
            expect_round_trip(&field, &value, sizeof value);
    }
    field_print(&field, &(double){0.1}, text, sizeof text);
    cr_expect_str_eq(text, "0.1");
    field_print(&field, &(double){1.0 / 3}, text, sizeof text);
    cr_expect_str_eq(text, "0.3333333333333333");
    field_print(&field, &(double){0.1 + 0.2}, text, sizeof text);
    cr_expect_str_eq(text, "0.30000000000000004");
}

Test(fields, times_read_back_as_the_same_nanoseconds)
{
    static const struct ifl_param field = {"t", IFL_TIME, 0, 0, 0, 1e9, NULL, "s", ""};
    char text[64];
    for (uint64_t i = 0; i < 20000; i++) {
        /* Any magnitude up to 1e9 s, as a configuration would give it: a double of seconds. */
        const double u = ifl_uniform(ifl_draw(2, IFL_DRAW_POLICY, i, 0));
        const double v = ifl_uniform(ifl_draw(2, IFL_DRAW_POLICY, i, 1));
        const int64_t ns = ifl_ns_from_s(u * pow(10, 18 * v - 9));
        expect_round_trip(&field, &ns, sizeof ns);
    }
    field_print(&field, &(int64_t){1500000000}, text, sizeof text);
    cr_expect_str_eq(text, "1.5");
    field_print(&field, &(int64_t){1}, text, sizeof text);
    cr_expect_str_eq(text, "1e-09");
}

Test(fields, texts_read_back_as_the_same_bytes)
{
    static const struct ifl_param field = {"x", IFL_TEXT, 0, 0, 0, 64, NULL, "", ""};
    static const char *const texts[] = {
        "plain",
        "",
        "null",
        "~",
        "7",
        "true",
        "a: b",
        "a #b",
        "#c",
        " lead",
        "trail ",
        "- x",
        "[x",
        "{x}",
        "'",
        "\"\\",
        "two\nlines",
        "\ttab",
        "\x01\x7f",
        "a\rb",
        "...",
        "---",
        "*x",
        "&x",
        "\xc3\xa9",
        "!x",
        "%x",
        "@x",
        "`x",
        "? x",
        "\xc2\x85x",
        "x:",
        "a,b",
        "\n",
        "\xef\xbb\xbf",
        "\xf0\x9f\x98\x80",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char value[64] = {0};
        memcpy(value, texts[i], strlen(texts[i]));
        expect_round_trip(&field, value, sizeof value);
    }
}
