/* A file of flags that a command line names: --config of vLLM and SGLang, --extra_llm_api_options
 * of TensorRT-LLM. */
#ifndef SIM_IMPORT_FLAG_FILE_H
#define SIM_IMPORT_FLAG_FILE_H

#include "import/facts.h"
#include "import/words.h"

/* True if the flag names such a file. */
bool flag_file_is(const struct server_flag *flag);

struct flag_file_at {
    const struct words *words; /* of the command line */
    size_t at, end;            /* those of the server */
    const char *script;        /* may write the file: cat >FILE <<EOF; NULL: none */
    const char *manifest;      /* may have it as the data of a ConfigMap; NULL: none */
    const char *folder;        /* of the command line; NULL: no file is read */
};

/* Reads the file that the command line names: *flags are its flags as words, quoted for
 * words_split; the caller frees them. NULL: none is named, or it is not at hand, which is a
 * finding. */
int flag_file_read(const struct flag_file_at *at, char **flags, struct facts *facts,
                   struct ifl_error *error);

/* True if the flags of the file count before those of the command line. */
bool flag_file_is_last(enum server server);

#endif
