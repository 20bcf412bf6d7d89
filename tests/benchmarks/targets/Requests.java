// Requests PATH: two threads that serve requests as fast as they can, 20 calls deep, beside 70 that
// wait for work and 30 that look for some every 20 ms. It counts in the file PATH, which is mapped:
// each of the two has a row of 16 longs, the requests it has served and then the nanoseconds it has
// spent in each of the eight methods.
import java.nio.ByteOrder;
import java.nio.LongBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.function.LongUnaryOperator;

public class Requests {
    static final int WORKERS = 2, ROW = 16, UNIT = 10000;
    static final Semaphore never = new Semaphore(0);
    static final LongUnaryOperator[] METHODS = {
        Requests::accept, Requests::parse, Requests::check, Requests::route,
        Requests::look, Requests::join, Requests::render, Requests::send,
    };

    static long accept(long sum) {
        for (int i = 0; i < UNIT; i++)
            sum = sum * 31 + i;
        return sum;
    }

    static long parse(long sum) {
        for (int i = 0; i < 2 * UNIT; i++)
            sum = sum * 33 + i;
        return sum;
    }

    static long check(long sum) {
        for (int i = 0; i < 3 * UNIT; i++)
            sum = sum * 35 + i;
        return sum;
    }

    static long route(long sum) {
        for (int i = 0; i < 4 * UNIT; i++)
            sum = sum * 37 + i;
        return sum;
    }

    static long look(long sum) {
        for (int i = 0; i < 6 * UNIT; i++)
            sum = sum * 39 + i;
        return sum;
    }

    static long join(long sum) {
        for (int i = 0; i < 8 * UNIT; i++)
            sum = sum * 41 + i;
        return sum;
    }

    static long render(long sum) {
        for (int i = 0; i < 12 * UNIT; i++)
            sum = sum * 43 + i;
        return sum;
    }

    static long send(long sum) {
        for (int i = 0; i < 16 * UNIT; i++)
            sum = sum * 45 + i;
        return sum;
    }

    static int deeper(int level, Runnable body) {
        if (level > 0) {
            return deeper(level - 1, body) + 1;
        }
        body.run();
        return 0;
    }

    static void start(String name, Runnable body) {
        Thread thread = new Thread(() -> deeper(20, body), name);
        thread.setDaemon(true);
        thread.start();
    }

    static void serve(LongBuffer counts, int row) {
        long sum = 0;
        while (true) {
            long begin = System.nanoTime();
            for (int i = 0; i < METHODS.length; i++) {
                sum = METHODS[i].applyAsLong(sum);
                long end = System.nanoTime();
                counts.put(row + 1 + i, counts.get(row + 1 + i) + end - begin);
                begin = end;
            }
            counts.put(row, counts.get(row) + 1 + (sum == 1 ? 1 : 0));
        }
    }

    static void await(long milliseconds) {
        while (true) {
            try {
                never.tryAcquire(milliseconds, TimeUnit.MILLISECONDS);
            } catch (InterruptedException exception) {
                return;
            }
        }
    }

    public static void main(String[] args) throws Exception {
        LongBuffer counts = FileChannel.open(Path.of(args[0]), StandardOpenOption.CREATE,
            StandardOpenOption.READ, StandardOpenOption.WRITE)
            .map(FileChannel.MapMode.READ_WRITE, 0, 8 * WORKERS * ROW)
            .order(ByteOrder.nativeOrder()).asLongBuffer();
        for (int i = 0; i < WORKERS; i++) {
            int row = i * ROW;
            start("serves", () -> serve(counts, row));
        }
        for (int i = 0; i < 100; i++) {
            long milliseconds = i < 70 ? Integer.MAX_VALUE : 20;
            start("waits", () -> await(milliseconds));
        }
        Thread.sleep(Long.MAX_VALUE);
    }
}
