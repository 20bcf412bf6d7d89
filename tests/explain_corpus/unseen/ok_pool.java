// expect: none
// A pool of four threads with little to do: twenty jobs a second, each done at once.
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

class Main {
	static long hash(String text) {
		long sum = 7;
		for (int i = 0; i < 2000; i++)
			sum = sum * 31 + text.charAt(i % text.length());
		return sum;
	}

	public static void main(String[] arguments) throws Exception {
		ExecutorService pool = Executors.newFixedThreadPool(4, work -> {
			Thread thread = new Thread(work);
			thread.setDaemon(true);
			return thread;
		});
		System.out.println("ready");
		for (int i = 0; i < 1800; i++) {
			String text = "job " + i;
			pool.submit(() -> hash(text));
			Thread.sleep(50);
		}
	}
}
