// Crowd THREADS: threads that work for a moment and sleep for a moment, 20 calls deep, beside those
// that the virtual machine has of its own.
public class Crowd {
    static int deeper(int level, int[] data) throws InterruptedException {
        if (level > 0) {
            return deeper(level - 1, data) + 1;
        }
        while (true) {
            for (int i = 0; i < data.length; i++) {
                data[i] = data[i] * 31 + i;
            }
            Thread.sleep(2);
        }
    }

    public static void main(String[] args) throws InterruptedException {
        for (int i = 0; i < Integer.parseInt(args[0]); i++) {
            Thread thread = new Thread(() -> {
                try {
                    deeper(20, new int[2000]);
                } catch (InterruptedException e) {
                    return;
                }
            });
            thread.start();
        }
    }
}
