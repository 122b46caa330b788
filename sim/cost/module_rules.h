/* Rules that name modules of a checkpoint, such as those that a quantization leaves out.
 *
 * A rule is of one of these kinds:
 *
 *   - re:TEXT or -:TEXT: a regular expression that matches from the beginning of the name; the
 *     match may end before the name does.
 *   - TEXT with * or ?: a pattern as in a shell, for the name or for that of an enclosing module.
 *   - TEXT: the name, or some of its words between dots. model.layers.0.mlp and self_attn are rules
 *     for model.layers.0.self_attn.q_proj; mlp.gate is none for mlp.gate_proj.
 *
 * vLLM and transformers differ in how much of a name a plain TEXT must match. Whole words give the
 * result that their checkpoints intend in both. Expressions are Python's, read by PCRE2. */
#ifndef SIM_COST_MODULE_RULES_H
#define SIM_COST_MODULE_RULES_H

#include <stddef.h>

struct module_rule;
/* Zeroed, it has no rules. Texts are borrowed. */
struct module_rules {
    struct module_rule *of;
    size_t n, capacity;
    struct pcre2_real_match_data_8 *data; /* owned, as the context */
    struct pcre2_real_match_context_8 *context;
};

/* Adds a rule. Returns 0, IFL_E_NOMEM, or IFL_E_INPUT for a regular expression that cannot be read.
 */
int module_rules_add(struct module_rules *rules, const char *text);
/* Returns 1 if a rule applies to the module, 0 if none does, or IFL_E_INPUT if an expression takes
 * too long. */
int module_rules_name(const struct module_rules *rules, const char *name);
void module_rules_free(struct module_rules *rules);

#endif
