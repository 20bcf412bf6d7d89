// expect: lock handleOrder writeReport
// Orders change stock in a synchronized method; a report is made in another one of the same object.
import java.util.ArrayList;
import java.util.List;

class Main {
	private final List<String> stock = new ArrayList<>();

	synchronized void handleOrder(int number) {
		stock.set(number % stock.size(), "order " + number);
	}

	synchronized int writeReport() {
		StringBuilder text = new StringBuilder();
		for (int round = 0; round < 20; round++) {
			text.setLength(0);
			for (String line : stock)
				text.append(line.toUpperCase()).append('\n');
		}
		return text.length();
	}

	public static void main(String[] arguments) throws Exception {
		Main shop = new Main();
		for (int i = 0; i < 50000; i++)
			shop.stock.add("item " + i);
		for (int i = 0; i < 4; i++) {
			Thread thread = new Thread(() -> {
				for (int n = 0;; n++) {
					shop.handleOrder(n);
					pause(2);
				}
			}, "handler-" + i);
			thread.setDaemon(true);
			thread.start();
		}
		Thread reports = new Thread(() -> {
			for (;;) {
				shop.writeReport();
				pause(10);
			}
		}, "reports");
		reports.setDaemon(true);
		reports.start();
		System.out.println("ready");
		Thread.sleep(90000);
	}

	static void pause(long ms) {
		try {
			Thread.sleep(ms);
		} catch (InterruptedException stopped) {
			Thread.currentThread().interrupt();
		}
	}
}
