/* Reads answers of a running server (/metrics, /version, /v1/models) into facts and findings
 * (facts.h). */
#ifndef SIM_IMPORT_ANSWERS_H
#define SIM_IMPORT_ANSWERS_H

#include "import/facts.h"

struct import_answer {
    const char *name; /* a file or a URL, for messages */
    const char *text; /* [n] */
    size_t n;
};

/* Reads the text of /metrics, or the JSON of /version or /v1/models; it recognises which from the
 * text. `answer` must outlive the facts. */
int answer_read(const struct import_answer *answer, struct facts *facts, struct ifl_error *error);

#endif
