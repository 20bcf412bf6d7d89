// expect: none
// Plays a stream: a decoder fills a ring, from which the device takes every 10 ms; a meter shows the level.
#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <fcntl.h>
#include <mutex>
#include <pthread.h>
#include <thread>
#include <unistd.h>
#include <vector>
#define NOINLINE __attribute__((noinline))
static const int RATE = 48000, PERIOD = 480;

class RingBuffer {
  std::vector<int16_t> data_;
  size_t head_ = 0, fill_ = 0;
  std::mutex mu_;
  std::condition_variable space_;
public:
  explicit RingBuffer(size_t n) : data_(n) {}
  void write(const int16_t *p, size_t n) {
    std::unique_lock<std::mutex> l(mu_);
    space_.wait(l, [&] { return data_.size() - fill_ >= n; });
    for (size_t i = 0; i < n; i++) data_[(head_ + fill_ + i) % data_.size()] = p[i];
    fill_ += n;
  }
  size_t read(int16_t *p, size_t n) {
    std::lock_guard<std::mutex> l(mu_);
    if (n > fill_) n = fill_;
    for (size_t i = 0; i < n; i++) p[i] = data_[(head_ + i) % data_.size()];
    head_ = (head_ + n) % data_.size();
    fill_ -= n;
    space_.notify_one();
    return n;
  }
};
static RingBuffer ring(RATE / 2);
static std::atomic<int> peak_level{0};
static std::atomic<unsigned long> periods{0}, underruns{0};

NOINLINE static void decode_frame(int16_t *out, int n, uint64_t pos) {
  static const double notes[] = {261.6, 293.7, 329.6, 349.2, 392.0, 440.0, 493.9, 523.3};
  double f = notes[(pos / (RATE / 4)) % 8];
  for (int i = 0; i < n; i++) {
    double t = (double)(pos + i) / RATE, s = 0;
    for (int h = 1; h <= 6; h++) s += std::sin(2 * M_PI * f * h * t) / h;
    out[i] = (int16_t)(s * 6000);
  }
}
NOINLINE static void equalize(int16_t *buf, int n) {
  static double low = 0;
  for (int i = 0; i < n; i++) {
    low += 0.12 * (buf[i] - low);
    buf[i] = (int16_t)(0.7 * buf[i] + 0.4 * low);
  }
}
static void decoder_loop() {
  pthread_setname_np(pthread_self(), "decoder");
  int16_t frame[1152];
  for (uint64_t pos = 0;; pos += 1152) {
    decode_frame(frame, 1152, pos);
    equalize(frame, 1152);
    ring.write(frame, 1152);
  }
}
NOINLINE static void measure_level(const int16_t *buf, int n) {
  int peak = 0;
  for (int i = 0; i < n; i++) peak = std::abs(buf[i]) > peak ? std::abs(buf[i]) : peak;
  peak_level.store(peak);
}
NOINLINE static void write_device(int fd, const int16_t *buf, int n) {
  if (write(fd, buf, n * sizeof *buf) < 0) perror("device");
}
static void output_loop() {
  pthread_setname_np(pthread_self(), "output");
  int fd = open("/dev/null", O_WRONLY);
  int16_t buf[PERIOD];
  auto next = std::chrono::steady_clock::now() + std::chrono::milliseconds(100);
  for (;;) {
    std::this_thread::sleep_until(next);
    next += std::chrono::milliseconds(10);
    size_t n = ring.read(buf, PERIOD);
    if (n < PERIOD) underruns++;
    measure_level(buf, n);
    write_device(fd, buf, n);
    periods++;
  }
}
static void meter_loop() {
  pthread_setname_np(pthread_self(), "meter");
  int held = 0;
  for (;;) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    int p = peak_level.load();
    held = p > held ? p : held * 9 / 10;
  }
}
int main() {
  alarm(90);
  puts("ready");
  fflush(stdout);
  std::thread a(decoder_loop), b(output_loop), c(meter_loop);
  for (;;) { sleep(1); fprintf(stderr, "playerd periods=%lu underruns=%lu\n", periods.exchange(0), underruns.load()); }
}
