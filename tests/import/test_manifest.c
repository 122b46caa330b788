/* Commands in the manifests of containers, quoted as a shell quotes words. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "import/facts.h"
#include "import/manifest.h"

/* wanted: the command; NULL: the text is no manifest. */
static void expect_command(const char *text, const char *wanted)
{
    struct facts facts = {0};
    struct ifl_error error = {0};
    char *command;
    cr_assert_eq(manifest_read(text, NULL, &command, &facts, &error), 0, "%s: %s", text,
                 error.text);
    cr_expect_eq(!command, !wanted, "%s: %s", text, command ? command : "no manifest");
    if (command && wanted)
        cr_expect_str_eq(command, wanted, "%s: %s", text, command);
    free(command);
    facts_free(&facts);
}

static void expect_wrong(const char *text, int line, const char *message)
{
    struct facts facts = {0};
    struct ifl_error error = {0};
    char *command;
    cr_expect_eq(manifest_read(text, NULL, &command, &facts, &error), IFL_E_INPUT, "%s", text);
    cr_expect_null(command);
    cr_expect(strstr(error.text, message), "%s: %s", text, error.text);
    cr_expect_eq(error.line, line, "%s: line %d", text, error.line);
    facts_free(&facts);
}

/* A shell reads the words again as the manifest has them: POSIX, Shell Command Language, 2.2.2. */
Test(manifest, words_are_quoted)
{
    expect_command("[vllm, serve, x]", "'vllm' 'serve' 'x' ");
    expect_command("- vllm\n- serve\n- it's\n- '{\"a\": 1}'\n- ''\n- $A;\n",
                   "'vllm' 'serve' 'it'\\''s' '{\"a\": 1}' '' '$A;' ");
    expect_command("command: vllm serve 'a b' \"c\" # comment\n", "'vllm' 'serve' 'a b' 'c' ");
    expect_command("command: |\n  vllm serve\n  x\nargs: [--a=b c]\n",
                   "'vllm' 'serve' 'x' '--a=b c' ");
}

/* Compose: entrypoint and command; Kubernetes: command and args. */
Test(manifest, the_image_has_a_program_unless_it_is_replaced)
{
    expect_command("image: vllm-openai\nargs: [x]\n", "'vllm-openai' 'x' ");
    expect_command("image: a/vllm-openai:v1\ncommand: x\n", "'a/vllm-openai:v1' 'x' ");
    expect_command("image: vllm-openai\nentrypoint: vllm serve\ncommand: x\n",
                   "'vllm-openai' 'vllm' 'serve' 'x' ");
    expect_command("image: lmsysorg/sglang:v0.5.9\nargs: [--tp, 2]\n",
                   "'lmsysorg/sglang:v0.5.9' python3 -m sglang.launch_server '--tp' '2' ");
    expect_wrong("image: lmsysorg/sglang:v0.5.9\nargs: [bash]\n", 1, "start a server");
    expect_wrong("image: vllm-openai\ncommand: bash\nargs: [x]\n", 1, "start a server");
    expect_wrong("a:\n- image: vllm-openai\n  command: [bash]\n", 2, "start a server");
    expect_wrong("image: vllm-openai\nentrypoint: []\ncommand: [x]\n", 1, "start a server");
    expect_wrong("image: vllm-openai\n", 0, "no container with a command or args");
}

Test(manifest, variables_stand_in_front)
{
    expect_command("environment: {A: 1, B: null, C: \"it's\"}\ncommand: vllm serve\n",
                   "A='1' B C='it'\\''s' 'vllm' 'serve' ");
    expect_command("environment: [A=1, B]\nimage: i\ncommand: vllm serve\n",
                   "A='1' B 'i' 'vllm' 'serve' ");
    expect_command("env: [{name: A, value: '1'}, {name: B, valueFrom: {c: d}}, {value: x}]\n"
                   "args: [vllm, serve]\n",
                   "A='1' B 'vllm' 'serve' ");
}

/* https://kubernetes.io/docs/tasks/inject-data-application/define-interdependent-environment-variables/:
 * $$(NAME) is not replaced, and a name without a value stays. */
Test(manifest, kubernetes_replaces_names_in_parentheses)
{
    expect_command("env: [{name: A, value: m}, {name: B, value: '$(A)/x'}]\n"
                   "args: [vllm, serve, $(B), --a=$(A)$(A), $$(A), $(C), $A, '${A}']\n",
                   "A='m' B='m/x' 'vllm' 'serve' 'm/x' '--a=mm' '$(A)' '$(C)' '$A' '${A}' ");
}

/* https://docs.docker.com/reference/compose-file/interpolation/: values are those of .env, and of
 * the defaults; $$ is a dollar sign. */
Test(manifest, compose_replaces_names_with_a_dollar_sign)
{
    expect_command("M=a\nN='b c' # .env\nservices:\n  s:\n    image: i:${T:-v1}\n"
                   "    command: vllm serve $M --x ${X:-8} --n \"${N}\" --y ${Y} $$Z ${E:-}\n",
                   "'i:v1' 'vllm' 'serve' 'a' '--x' '8' '--n' 'b c' '--y' '${Y}' '$Z' ");
    expect_command("M=a\nenvironment: {A: $M, B: 2}\ncommand: vllm serve ${A:-9} $B\n",
                   "A='a' B='2' 'vllm' 'serve' '9' '2' ");
    expect_wrong("M=a\ncommand: vllm 'serve\n", 2, "a quote is not closed");
}

/* https://docs.skypilot.co/en/latest/reference/yaml-spec.html */
Test(manifest, scripts_stand_behind_their_variables)
{
    expect_command("resources: {accelerators: 'H100:8'}\nenvs: {M: x, T: null}\n"
                   "setup: pip install vllm\nrun: |\n  cd /\n  vllm serve $M\n",
                   "M='x'\nSKYPILOT_NUM_GPUS_PER_NODE='8'\npip install vllm\n"
                   "cd /\nvllm serve $M\n\n");
    expect_command("resources: {accelerators: {L4: 2, A10G: 2}}\nnum_nodes: 1\nrun: vllm serve x\n",
                   "SKYPILOT_NUM_NODES='1'\nSKYPILOT_NUM_GPUS_PER_NODE='2'\nvllm serve x\n");
    expect_command("resources: {accelerators: ['L4:2', A10G]}\nrun: vllm serve x\n",
                   "vllm serve x\n");
    expect_command("type: service\nenv: [M=x]\ncommands:\n- cd /\n- vllm serve $M\n",
                   "M='x'\ncd /\nvllm serve $M\n");
    expect_wrong("a: {run: nginx}\n", 1, "start a server");
}

Test(manifest, templates_are_an_error)
{
    static const char *const templates[] = {
        "image: vllm-openai:v1\nargs: [--model, '{{ .Values.model }}']\n",
        "image: '{{ .Values.image }}'\nargs: [--model, x]\n",
        "image: vllm-openai:v1\n{{- if .Values.tp }}\nargs: [x]\n{{- end }}\n",
        "{{- if .Values.on }}\nargs: [vllm, serve]\n{{- end }}\n",
    };
    static const int lines[] = {2, 1, 2, 1};
    for (size_t i = 0; i < sizeof templates / sizeof *templates; i++)
        expect_wrong(templates[i], lines[i], "{{ is of a template without its values");
    expect_command("logging: {tag: '{{.Name}}'}\ncommand: vllm serve x\n", "'vllm' 'serve' 'x' ");
    expect_command("command: [vllm, serve, --chat-template, '{% x %}{{ y }}']\n",
                   "'vllm' 'serve' '--chat-template' '{% x %}{{ y }}' ");
}

Test(manifest, one_container_starts_a_server)
{
    expect_command("services:\n  a: {command: nginx}\n  b: {command: vllm serve x}\n",
                   "'vllm' 'serve' 'x' ");
    expect_command("a: 1\n---\nb: [{args: [vllm, serve]}]\n---\n", "'vllm' 'serve' ");
    expect_command("x-a: &a {command: vllm serve}\nb: {<<: [{c: d}, *a]}\n", "'vllm' 'serve' ");
    expect_wrong("a: {command: vllm serve x}\nb: {command: sglang serve y}\n", 2,
                 "a second container starts a server, the first on line 1");
    expect_wrong("a: {command: vllm serve x}\n---\nb: {command: vllm serve y}\n", 3,
                 "a second container");
    expect_wrong("a: 1\nb: {command: pgrep -f 'vllm serve'}\n", 2, "start a server");
}

Test(manifest, what_cannot_be_read_is_an_error)
{
    expect_wrong("command: [vllm, serve, --tp 2]\n", 1, "--tp and what follows are one word");
    expect_wrong("command:\n- vllm\n- [serve]\n", 3, "an item of a command is a list");
    expect_wrong("command: vllm 'serve\n", 1, "a quote is not closed");
    expect_wrong("command: [vllm\n", 2, "not valid YAML");
    expect_wrong("command: vllm serve\ncommand: vllm serve\n", 2, "key command given twice");
    expect_wrong("[\"vllm\", \"serve\"", 2, "not valid YAML");
}

Test(manifest, commands_of_a_shell_are_none)
{
    static const char *const commands[] = {
        "",
        "vllm serve x",
        "#!/bin/sh\n# command: x\nvllm serve x",
        "[ -f x ] && vllm serve x",
        "[ \"$a\" = b ] && vllm serve x",
        "[[ \"$a\" ]] && vllm serve x",
        "{ vllm serve x; }",
        "A=b vllm serve x",
        "-x",
        "vllm/vllm-openai:v0.9.1 --model x",
        "vllm serve x --speculative-config '{\"a\": 1}'",
    };
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        expect_command(commands[i], NULL);
}
