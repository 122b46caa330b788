/* Ceilings of this machine and how near the engine comes to them. Usage: bench [LAYERS [FILE.csv]];
 * exit 77 where there is no GPU. */
#include <stdio.h>
#include <stdlib.h>

#include "measure.h"

int main(int argc, char *argv[])
{
    int n_devices = 0;
    if (cudaGetDeviceCount(&n_devices) || n_devices == 0) {
        fprintf(stderr, "no CUDA device\n");
        return 77;
    }
    const int n_layers = argc > 1 ? atoi(argv[1]) : 32;
    report_to(argc > 2 ? argv[2] : NULL);
    const struct ceilings ceilings = ceilings_measure();
    bench_kernels(&ceilings);
    if (n_layers > 0)
        bench_steps(&ceilings, n_layers);
    report_end();
    return 0;
}
