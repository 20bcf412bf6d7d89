// Requests PATH: two threads that count as fast as they can, 20 calls deep, beside 100 that
// wait for work. What they have counted is written to the file PATH, 20 times a second.
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;

public class Requests {
    static final long[] counts = new long[64];
    static final Semaphore never = new Semaphore(0);

    static int deeper(int level, Runnable body) {
        if (level > 0) {
            return deeper(level - 1, body) + 1;
        }
        body.run();
        return 0;
    }

    static void count(int at) {
        long sum = 0;
        for (int i = 0; i < 2000; i++) {
            sum = sum * 31 + i;
        }
        counts[at] += 1 | (sum & 1);
    }

    static void start(Runnable body) {
        Thread thread = new Thread(() -> deeper(20, body));
        thread.setDaemon(true);
        thread.start();
    }

    static void await() {
        while (true) {
            try {
                never.tryAcquire(20, TimeUnit.MILLISECONDS);
            } catch (InterruptedException exception) {
                return;
            }
        }
    }

    public static void main(String[] args) throws IOException, InterruptedException {
        for (int i = 0; i < 2; i++) {
            int at = 32 * i;
            start(() -> {
                while (true) {
                    count(at);
                }
            });
        }
        for (int i = 0; i < 100; i++) {
            start(Requests::await);
        }
        while (true) {
            Files.writeString(Path.of(args[0] + ".new"), (counts[0] + counts[32]) + "\n");
            Files.move(Path.of(args[0] + ".new"), Path.of(args[0]),
                StandardCopyOption.ATOMIC_MOVE);
            Thread.sleep(50);
        }
    }
}
