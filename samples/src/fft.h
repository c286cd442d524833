/* Transform of 16 complex ones through cuFFT; returns the first bin, which is 16. */
#ifndef FFT_H
#define FFT_H
#include "runtime.h"

static inline float transform(void) {
    enum { POINTS = 16 };
    float signal[2 * POINTS] = {0};
    for (int i = 0; i < POINTS; i++) signal[2 * i] = 1;
    float *data = to_device(signal, 2 * POINTS);
    cufftHandle plan;
    CHECK(cufftPlan1d(&plan, POINTS, CUFFT_C2C, 1));
    CHECK(cufftExecC2C(plan, data, data, CUFFT_FORWARD));
    from_device(signal, data, 2 * POINTS);
    CHECK(cufftDestroy(plan));
    return signal[0];
}
#endif
