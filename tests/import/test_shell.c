/* Values of variables, as bash itself puts them into the words of a command. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "import/shell.h"
#include "import/words.h"

/* What bash hands to `args` at the end of a script, a word in brackets each. */
static void ask_bash(const char *script, char *words, size_t n_bytes)
{
    char text[4096];
    snprintf(text, sizeof text, "args() { printf '[%%s]' \"$@\"; }\n%s", script);
    setenv("SCRIPT", text, 1);
    FILE *bash = popen("exec env -i \"SCRIPT=$SCRIPT\" bash -c 'eval \"$SCRIPT\"'", "r");
    cr_assert_not_null(bash);
    words[fread(words, 1, n_bytes - 1, bash)] = '\0';
    cr_assert_eq(pclose(bash), 0, "%s", script);
}

static void own_words(const char *script, char *text, size_t n_bytes)
{
    struct variables variables = {0};
    struct ifl_error error = {0};
    struct words words;
    char *expanded;
    size_t n = 0;
    cr_assert_eq(shell_expand(script, &variables, &expanded, &error), 0, "%s", script);
    cr_assert_eq(words_split(expanded, &words, &error), 0, "%s", expanded);
    size_t at = 0;
    while (at < words.n && strcmp(words.of[at], "args") != 0)
        at++;
    text[0] = '\0';
    for (at++; at < words.n && !words.is_break[at]; at++)
        n += (size_t)snprintf(text + n, n_bytes - n, "[%s]", words.of[at]);
    words_free(&words);
    free(expanded);
    variables_free(&variables);
}

Test(shell, values_are_those_of_bash)
{
    static const char *const scripts[] = {
        "M=a/b-1.5\nargs $M \"$M\" ${M} x$M'$M' \"${M}s\"",
        "M='it'\"'\"'s {\"a\": 1}'\nargs \"$M\" --c=\"$M\"",
        "A=' --tp 2  --x '\nargs m $A \"$A\"",
        "args ${A:-8} ${A-x} \"${A:-b c}\" ${A:-b c} ${A:+y} ${A:-\"b c\"}",
        "A=\nargs ${A:-8} ${A-8} \"${A}\" $A ${A:+y}",
        "A=1; args ${A:-8} ${A:+y} ${A:?no}",
        ": ${A:=5}\nargs $A",
        "export A=1 B=2\nargs $A$B",
        "A=1\nB=$A$A\nB+=x\nargs $B",
        "A=(--tp 2 'b c')\nargs m \"${A[@]}\" z",
        "A=(\n  --tp 2 # two\n  --x='a b'\n)\nA+=(--y)\nB=5\nA+=(\"$B\" ${B}6)\nargs \"${A[@]}\"",
        "A=(vllm 'a b')\nargs \"${A[@]}\"",
        "readonly A=3\nargs \\\n  --a $A \\\n  --b \"$A\" # $A\n",
        "A='$B'\nB=1\nargs $A \"$A\" \\$B '$B'",
        "A=\"x\\\"y\\$z\\\\\"\nargs \"$A\"",
        "A=a\nfalse && A=b\nargs c",
        "cd / && export A=7 && args $A",
        "A=${B:-${C:-deep}}\nargs $A ${C:-\"}\"}",
        "A_1=x\nargs $A_1.y ${A_1}_z",
        "if true; then B=1; fi\nA=2\nargs $A",
    };
    for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++) {
        char expected[1024], found[1024];
        ask_bash(scripts[i], expected, sizeof expected);
        own_words(scripts[i], found, sizeof found);
        cr_expect_str_eq(found, expected, "%s\n%s\nexpected %s", scripts[i], found, expected);
    }
}

/* Nothing is run and no file is read: what only these give has no value. */
Test(shell, what_has_no_value_stays_as_it_is_written)
{
    static const char *const scripts[][2] = {
        {"A=(x y)\nargs ${A[1]}", "[${A[1]}]"},
        {"args $A ${B} \"$@\" ${C%/*} $(nproc --all | x) `pwd`",
         "[$A][${B}][$@][${C%/*}][$(nproc --all | x)][`pwd`]"},
        {"A=1\nif [ \"$X\" ]; then A=2; fi\nargs $A", "[$A]"},
        {"A=1\n[ -n \"$X\" ] && A=2\nargs $A", "[$A]"},
        {"A=1\nfor A in 1 2; do args $A; done", "[$A]"},
        {"A=(x)\ncase $X in y) A+=(z);; esac\nargs \"${A[@]}\"", "[${A[@]}]"},
        {"A=$(cat x)\nargs \"$A\"", "[$(cat x)]"},
        {"API_KEY=hunter2\nHF_TOKEN=x\nMAX_TOKENS=9\nargs $API_KEY $HF_TOKEN $MAX_TOKENS",
         "[$API_KEY][$HF_TOKEN][9]"},
    };
    for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++) {
        char found[1024];
        own_words(scripts[i][0], found, sizeof found);
        cr_expect_str_eq(found, scripts[i][1], "%s\n%s", scripts[i][0], found);
    }
}

Test(shell, settings_stand_in_front_of_other_text)
{
    cr_expect_eq(shell_settings("# .env\nA=1\n\nB='x y'\nservices:\n"), 20);
    cr_expect_eq(shell_settings("services:\n  A=1\n"), 0);
    cr_expect_eq(shell_settings(""), 0);
    cr_expect_eq(shell_settings("vllm serve x\nA=1\n"), 0);
}
