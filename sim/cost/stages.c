#include "cost/stages.h"

#include <stdlib.h>

#include "inflight/minmax.h"

void stages_cut_evenly(struct stages *stages, int32_t n)
{
    ifl_require(n >= 1 && n <= STAGES_MOST);
    *stages = (struct stages){.n = n};
    for (int32_t s = 0; s < n; s++)
        stages->layers[s] = 1;
}

int32_t stages_layers(const struct stages *stages)
{
    int32_t n = 0;
    for (int32_t s = 0; s < stages->n; s++)
        n += stages->layers[s];
    return n;
}

int32_t stages_most_layers(const struct stages *stages)
{
    int32_t most = 0;
    for (int32_t s = 0; s < stages->n; s++)
        most = ifl_max(most, stages->layers[s]);
    return most;
}

bool stages_read(struct stages *stages, int32_t n_wanted, const char *list)
{
    ifl_require(n_wanted >= 1 && n_wanted <= STAGES_MOST);
    *stages = (struct stages){.n = n_wanted};
    int32_t n = 0;
    for (const char *at = list; n < stages->n; n++) {
        char *end;
        const long layers = strtol(at, &end, 10);
        if (end == at || layers < 1 || layers > INT16_MAX || (*end != ',' && *end != '\0'))
            return false;
        stages->layers[n] = (int32_t)layers;
        if (*end == '\0')
            return n + 1 == stages->n;
        at = end + 1;
    }
    return false;
}

int stages_cut(struct stages *stages, int32_t n, int32_t layers, const char *list,
               struct ifl_error *error)
{
    ifl_require(n >= 1 && n <= STAGES_MOST);
    *stages = (struct stages){.n = n};
    if (*list && (!stages_read(stages, n, list) || stages_layers(stages) != layers))
        return ifl_fail(error, IFL_E_INPUT,
                        "parallel.stage_layers is %s, expected %d numbers from 1 up with commas "
                        "between them and the sum %d",
                        list, n, layers);
    if (*list)
        return 0;
    if (n > layers)
        return ifl_fail(error, IFL_E_INPUT,
                        "parallel.pipeline is %d, expected at most the number of layers, %d", n,
                        layers);
    const int32_t rest = layers % n;
    for (int32_t s = 0; s < n; s++)
        stages->layers[s] = layers / n + (s < n - 1 && s >= n - 1 - rest);
    return 0;
}
