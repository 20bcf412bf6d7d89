/* expect: none
 * A batch analysis: it computes spectra of vibrations, block by block. */
#define _GNU_SOURCE
#include <complex.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#define NOINLINE __attribute__((noinline))
#define N 8192
#define CHANNELS 16

typedef double complex cplx;
static cplx twiddle[N / 2];
static double hann[N];
static double power[CHANNELS][N / 2];
static unsigned long blocks;

static void init_tables(void)
{
	for (int i = 0; i < N / 2; i++)
		twiddle[i] = cexp(-2 * M_PI * I * i / N);
	for (int i = 0; i < N; i++)
		hann[i] = 0.5 - 0.5 * cos(2 * M_PI * i / (N - 1));
}
NOINLINE static void load_block(double *x, int channel, unsigned long block)
{
	double f = 40 + channel * 17 + (block % 50), phase = block * 0.37;
	for (int i = 0; i < N; i++)
		x[i] = sin(2 * M_PI * f * i / N + phase) + 0.3 * sin(2 * M_PI * 3 * f * i / N) +
		       0.01 * ((i * 7919) % 101 - 50);
}
NOINLINE static void apply_window(const double *x, cplx *out)
{
	for (int i = 0; i < N; i++)
		out[i] = x[i] * hann[i];
}
NOINLINE static void bit_reverse(cplx *a)
{
	for (unsigned i = 1, j = 0; i < N; i++) {
		unsigned bit = N >> 1;
		for (; j & bit; bit >>= 1)
			j ^= bit;
		j ^= bit;
		if (i < j) {
			cplx t = a[i];
			a[i] = a[j];
			a[j] = t;
		}
	}
}
NOINLINE static void fft(cplx *a)
{
	bit_reverse(a);
	for (int len = 2; len <= N; len <<= 1) {
		int half = len / 2, step = N / len;
		for (int i = 0; i < N; i += len)
			for (int k = 0; k < half; k++) {
				cplx w = twiddle[k * step];
				double vr = creal(a[i + k + half]) * creal(w) -
				            cimag(a[i + k + half]) * cimag(w);
				double vi = creal(a[i + k + half]) * cimag(w) +
				            cimag(a[i + k + half]) * creal(w);
				cplx u = a[i + k], v = vr + vi * I;
				a[i + k] = u + v;
				a[i + k + half] = u - v;
			}
	}
}
NOINLINE static void accumulate_power(const cplx *a, double *acc)
{
	for (int i = 0; i < N / 2; i++)
		acc[i] =
		    0.95 * acc[i] + 0.05 * (creal(a[i]) * creal(a[i]) + cimag(a[i]) * cimag(a[i]));
}
NOINLINE static int find_peak(const double *acc)
{
	int best = 1;
	for (int i = 2; i < N / 2; i++)
		if (acc[i] > acc[best])
			best = i;
	return best;
}
NOINLINE static void analyse_block(unsigned long block, int *peaks)
{
	static double x[N];
	static cplx a[N];
	for (int ch = 0; ch < CHANNELS; ch++) {
		load_block(x, ch, block);
		apply_window(x, a);
		fft(a);
		accumulate_power(a, power[ch]);
		peaks[ch] = find_peak(power[ch]);
	}
}
static void *progress_loop(void *arg)
{
	(void)arg;
	pthread_setname_np(pthread_self(), "progress");
	for (;;) {
		sleep(1);
		fprintf(stderr, "spectra: %lu blocks\n",
		        __atomic_load_n(&blocks, __ATOMIC_RELAXED));
	}
	return NULL;
}
int main(void)
{
	alarm(90);
	init_tables();
	puts("ready");
	fflush(stdout);
	pthread_t t;
	pthread_create(&t, NULL, progress_loop, NULL);
	int peaks[CHANNELS];
	for (unsigned long b = 0;; b++) {
		analyse_block(b, peaks);
		__atomic_add_fetch(&blocks, 1, __ATOMIC_RELAXED);
	}
}
