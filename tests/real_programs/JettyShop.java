// SPDX-License-Identifier: MIT
// A shop on Jetty: JettyShop platform | virtual. Prints the port that it listens on.
//
// /search computes for one unit of work and /render for three. /order computes for two, all of them
// while it has the monitor of the stock, which all orders want.
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.Executor;
import org.eclipse.jetty.http.pathmap.PathSpec;
import org.eclipse.jetty.server.Handler;
import org.eclipse.jetty.server.Request;
import org.eclipse.jetty.server.Response;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;
import org.eclipse.jetty.server.handler.PathMappingsHandler;
import org.eclipse.jetty.util.Callback;
import org.eclipse.jetty.util.VirtualThreads;
import org.eclipse.jetty.util.thread.QueuedThreadPool;

public class JettyShop {
    static final int N_THREADS = 32, UNIT = 150000;

    static class Stock {
        long left = 1;
    }

    static final Stock stock = new Stock();

    static long compute(long seed, int n) {
        for (int i = 0; i < n; i++)
            seed = seed * 6364136223846793005L + (seed >>> 29);
        return seed;
    }

    abstract static class Page extends Handler.Abstract {
        abstract long work();

        @Override
        public boolean handle(Request request, Response response, Callback callback) {
            final byte[] text = Long.toString(work()).getBytes(StandardCharsets.UTF_8);
            response.write(true, ByteBuffer.wrap(text), callback);
            return true;
        }
    }

    static class Search extends Page {
        @Override
        long work() {
            return compute(1, UNIT);
        }
    }

    static class Render extends Page {
        @Override
        long work() {
            return compute(2, 3 * UNIT);
        }
    }

    static class Order extends Page {
        @Override
        long work() {
            synchronized (stock) {
                stock.left = compute(stock.left, 2 * UNIT);
                return stock.left;
            }
        }
    }

    public static void main(String[] args) throws Exception {
        final QueuedThreadPool pool = new QueuedThreadPool(N_THREADS);
        if (args[0].equals("virtual")) {
            final Executor executor = VirtualThreads.getDefaultVirtualThreadsExecutor();
            if (executor == null)
                throw new IllegalStateException("this Java has no virtual threads");
            pool.setVirtualThreadsExecutor(executor);
        }
        final Server server = new Server(pool);
        final ServerConnector connector = new ServerConnector(server);
        final PathMappingsHandler pages = new PathMappingsHandler();
        connector.setHost("127.0.0.1");
        server.addConnector(connector);
        pages.addMapping(PathSpec.from("/search"), new Search());
        pages.addMapping(PathSpec.from("/render"), new Render());
        pages.addMapping(PathSpec.from("/order"), new Order());
        server.setHandler(pages);
        server.start();
        System.out.println(connector.getLocalPort());
        server.join();
    }
}
