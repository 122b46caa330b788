#include <criterion/criterion.h>
#include <string.h>

#include "inflight/nearest.h"

#include "base/tree.h"

static struct node *parse(const char *text)
{
    struct node *root;
    struct ifl_error error = {0};
    cr_assert_eq(tree_parse(text, strlen(text), "f.yaml", &root, &error), 0, "%s", error.text);
    return root;
}

static void expect_bytes_wrong(const char *text, size_t n_bytes, int line, int column,
                               const char *message)
{
    struct node *root;
    struct ifl_error error = {0};
    cr_expect_eq(tree_parse(text, n_bytes, "f.yaml", &root, &error), IFL_E_INPUT, "%s", text);
    cr_expect_null(root);
    cr_expect_str_eq(error.file, "f.yaml");
    cr_expect_str_eq(error.text, message, "%s", error.text);
    cr_expect(error.line == line && error.column == column, "%s: %d:%d", message, error.line,
              error.column);
}

static void expect_wrong(const char *text, int line, int column, const char *message)
{
    expect_bytes_wrong(text, strlen(text), line, column, message);
}

static char *printed(const struct node *root)
{
    char *text = NULL;
    size_t n_bytes = 0;
    struct ifl_error error;
    FILE *out = open_memstream(&text, &n_bytes);
    cr_assert_eq(tree_print(root, out, &error), 0);
    cr_assert_eq(fclose(out), 0);
    return text;
}

static void expect_printed(const struct node *root, const char *expected)
{
    char *text = printed(root);
    cr_expect_str_eq(text, expected, "%s", text);
    free(text);
}

Test(tree, nodes_know_their_place)
{
    struct node *root = parse("a: 1\nb:\n  - x\n  - {c: 'y'}\n");
    const struct node *list = tree_child(root, "b");
    cr_assert_eq(list->kind, NODE_LIST);
    cr_expect_eq(list->line, 2);
    cr_expect_eq(list->of[0]->line, 3);
    cr_expect_eq(list->of[0]->column, 5);
    const struct node *c = tree_child(list->of[1], "c");
    cr_assert_not_null(c);
    cr_expect_eq(c->line, 4);
    cr_expect_eq(c->column, 6);
    cr_expect(c->quoted);
    cr_expect_not(list->of[0]->quoted);
    tree_free(root);
}

Test(tree, windows_files_read_as_others)
{
    struct node *root = parse("\xef\xbb\xbf"
                              "a: 1\r\nb: two\r\n");
    cr_expect_str_eq(tree_child(root, "a")->text, "1");
    cr_expect_str_eq(tree_child(root, "b")->text, "two");
    cr_expect_eq(root->n, 2);
    tree_free(root);
}

Test(tree, broken_yaml_is_named_with_its_place)
{
    expect_wrong("a: 1\nb: 2\na: 3\n", 3, 1, "key a given twice, first on line 1");
    expect_wrong("m: {x: 1, x: 2}", 1, 11, "key x given twice, first on line 1");
    expect_wrong("", 1, 1, "nothing here, expected keys");
    expect_wrong("# only a comment\n", 1, 1, "nothing here, expected keys");
    expect_wrong("a: 1\n---\nb: 2\n", 3, 1, "a second document, expected only one");
    expect_wrong("a: &x [1, *x]\n", 1, 4, "an anchor that contains itself");
    expect_wrong("a: *nobody\n", 1, 4, "not valid YAML: found undefined alias");
    expect_wrong("a:\n\tb: 1\n", 2, 1,
                 "not valid YAML: found character that cannot start any token while scanning for "
                 "the next token");
    expect_wrong("a: \"open", 1, 9,
                 "not valid YAML: found unexpected end of stream while scanning a quoted scalar");
    expect_wrong("a: 1\nb: \xff\n", 2, 4, "not valid YAML: invalid leading UTF-8 octet");
    expect_wrong("? [a, b]\n: 1\n", 1, 3, "a key that is not a word");
    expect_wrong("a: !!int 3\n", 1, 1, "a tag, expected a value without one");
    expect_wrong("a: \"x\\0y\"\n", 1, 1, "text with a NUL character");
}

Test(tree, all_documents_are_a_list)
{
    static const char twice[] = "a: 1\n---\nb: 1\nb: 2\n";
    static const char text[] = "# none\n---\na: &x 1\nb: *x\n---\n- c\n---\n";
    struct node *roots;
    struct ifl_error error = {0};
    cr_assert_eq(tree_parse_all(text, strlen(text), "f.yaml", &roots, &error), 0, "%s", error.text);
    cr_assert_eq(roots->n, 3);
    cr_expect_str_eq(tree_text(tree_child(roots->of[0], "b")), "1");
    cr_expect_eq(roots->of[1]->line, 6);
    cr_expect_str_eq(roots->of[1]->of[0]->text, "c");
    cr_expect(tree_is_null(roots->of[2]));
    tree_free(roots);
    cr_assert_eq(tree_parse_all("", 0, "f.yaml", &roots, &error), 0);
    cr_expect_eq(roots->n, 0);
    tree_free(roots);
    cr_expect_eq(tree_parse_all(twice, strlen(twice), "f.yaml", &roots, &error), IFL_E_INPUT);
    cr_expect_null(roots);
    cr_expect_eq(error.line, 4);
}

Test(tree, nesting_and_unfolding_are_bounded)
{
    char deep[256] = "a: ";
    memset(deep + 3, '[', 64);
    memset(deep + 67, ']', 64);
    expect_wrong(deep, 1, 67, "nested deeper than 64 levels");
    /* Six levels of nine aliases each: 9^6 values from a few lines. The
     * 10001st is the third 1 of a: 1 + 10 + 91 + 820 + 7381 + 1, then (1 + 820) + (1 + 9 x 91) +
     * (1 + 1 + 5 x 10 + 1 + 3). */
    expect_wrong("a: &a [1,1,1,1,1,1,1,1,1]\n"
                 "b: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\n"
                 "c: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\n"
                 "d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\n"
                 "e: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\n",
                 1, 12, "more than 10000 values, aliases unfolded");
}

Test(tree, aliases_to_finished_anchors_are_copies)
{
    struct node *root = parse("a: &x {p: 1}\nb: *x\n");
    expect_printed(root, "a:\n  p: 1\nb:\n  p: 1\n");
    tree_free(root);
}

Test(tree, printing_and_parsing_are_inverse)
{
    static const char *const texts[] = {
        "a: '1'\nb: \"null\"\nc: null\nd: ''\n",
        "t: \"two\\nlines and \\\"quotes\\\" and \\x01\"\n",
        "l: [a, [b, {c: d}], 'e, f']\nm: {}\nn: []\n",
        "u: \xc3\xa9\xe2\x80\xa8 \"\n",
        "'odd key: #': x\n",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct node *root = parse(texts[i]);
        char *once = printed(root);
        struct node *again = parse(once);
        expect_printed(again, once);
        cr_expect_eq(again->n, root->n);
        for (size_t j = 0; j < root->n; j++) {
            cr_expect_str_eq(again->of[j]->key, root->of[j]->key);
            cr_expect_eq(again->of[j]->kind, root->of[j]->kind);
            if (root->of[j]->kind == NODE_SCALAR) {
                cr_expect_str_eq(again->of[j]->text, root->of[j]->text);
                cr_expect_eq(tree_is_null(again->of[j]), tree_is_null(root->of[j]), "%s", once);
            }
        }
        free(once);
        tree_free(again);
        tree_free(root);
    }
}

Test(tree, put_makes_maps_and_refuses_to_cross_a_value)
{
    struct ifl_error error = {0};
    struct node *root = parse("a: {b: 1}\ns: word\n"), *value = parse("7");
    cr_assert_eq(tree_put(root, "a.c.d", value, &error), 0);
    cr_assert_eq(tree_put(root, "a.b", value, &error), 0);
    expect_printed(root, "a:\n  b: 7\n  c:\n    d: 7\ns: word\n");
    cr_expect_eq(tree_put(root, "s.t", value, &error), IFL_E_INPUT);
    cr_expect_str_eq(error.text, "s.t cannot be set: its part s is word, not a map");
    cr_expect_eq(tree_put(root, "a..b", value, &error), IFL_E_INPUT);
    cr_expect_eq(tree_put(root, "", value, &error), IFL_E_INPUT);
    cr_expect_str_eq(tree_at(root, "a.c.d")->text, "7");
    cr_expect_null(tree_at(root, "a.c.d.e"));
    cr_expect_null(tree_at(root, "a.x"));
    tree_free(value);
    tree_free(root);
}

Test(tree, overlay_merges_maps_and_replaces_the_rest)
{
    struct ifl_error error = {0};
    struct node *under = parse("a: {b: 1, c: 2}\nl: [1, 2]\nk: 1\nn: {x: 1}\n");
    struct node *over = parse("a: {c: 3, d: 4}\nl: [9]\nk:\nn: null\n");
    cr_assert_eq(tree_overlay(under, over, &error), 0);
    expect_printed(under, "a:\n  b: 1\n  c: 3\n  d: 4\nl: [9]\nk: 1\nn: null\n");
    tree_free(under);
    tree_free(over);
}

Test(tree, overlay_merges_a_map_of_numbers_with_a_list)
{
    struct ifl_error error = {0};
    struct node *under = parse("l: [{a: 1, b: 2}, {a: 3}, 4]\n");
    struct node *over = parse("l: {1: {c: 5}, 2: 6, 0: {a: 7}}\n");
    struct node *beyond = parse("l: {3: 1}\n"), *other = parse("l: {0: 1, a: 2}\n");
    cr_assert_eq(tree_overlay(under, over, &error), 0);
    expect_printed(under, "l: [{a: 7, b: 2}, {a: 3, c: 5}, 6]\n");
    cr_expect_eq(tree_overlay(under, beyond, &error), IFL_E_INPUT);
    cr_expect_str_eq(error.text, "there is no 3 in a list of 3, expected a number from 0 on");
    cr_assert_eq(tree_overlay(under, other, &error), 0);
    expect_printed(under, "l:\n  0: 1\n  a: 2\n");
    tree_free(under);
    tree_free(over);
    tree_free(beyond);
    tree_free(other);
}

Test(tree, a_missing_file_is_an_error)
{
    struct node *root;
    struct ifl_error error = {0};
    cr_expect_eq(tree_load("/nowhere/at/all.yaml", &root, &error), IFL_E_INPUT);
    cr_expect_str_eq(error.file, "/nowhere/at/all.yaml");
    cr_expect_str_eq(error.text, "cannot be opened: No such file or directory");
    cr_expect_eq(tree_load("/", &root, &error), IFL_E_INPUT);
    cr_expect_str_eq(error.text, "cannot be read: Is a directory");
}

/* Distances by hand: deletion, swap of neighbours, substitution; an unrelated word has no match. */
Test(nearest, finds_misspelt_words)
{
    static const char *const words[] = {"prefill-first", "static", "mixed", "rate_rps", "cv"};
    cr_expect_str_eq(ifl_nearest("prefil-first", words, 5), "prefill-first");
    cr_expect_str_eq(ifl_nearest("sattic", words, 5), "static");
    cr_expect_str_eq(ifl_nearest("mixes", words, 5), "mixed");
    cr_expect_str_eq(ifl_nearest("rate_rsp", words, 5), "rate_rps");
    cr_expect_str_eq(ifl_nearest("rate", words, 5), "rate_rps");
    cr_expect_null(ifl_nearest("sjf", words, 5));
    cr_expect_null(ifl_nearest("dynamic-split", words, 5));
    cr_expect_null(ifl_nearest("x", words, 0));
}
