/* SPDX-License-Identifier: Apache-2.0 */
/*
 * java Chains SECONDS: Java programs for tests/accuracy/java, of JDK 8 and later.
 *
 * Each scenario runs for its part of the seconds of CPU time. note() is called at the ends of its
 * chains of calls: it asks the JVM for the stack that is there, and keeps it. At the end the chains
 * are printed, one a line, root first, each method with its line. BURN_GATE names a FIFO that is
 * read before.
 */
import java.io.FileInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.IntToLongFunction;
import java.util.stream.IntStream;

public class Chains {
	static final Set<String> CHAINS = ConcurrentHashMap.newKeySet();
	static final int EACH = 4095; /* of so many calls one is noted, after the first rounds */
	static volatile boolean noting = true, besides;
	static volatile long sink;
	static int calls;

	/* ---- what the program knows ---- */

	static void note() {
		StackTraceElement[] frames = Thread.currentThread().getStackTrace();
		StringBuilder b = new StringBuilder();

		for (int i = frames.length - 1; i > 1; i--) {
			StackTraceElement f = frames[i];
			b.append(f.getClassName()).append('.').append(f.getMethodName());
			/* a method without lines: where hidden frames are shown 8 adds a number to its bci */
			b.append(' ').append(f.getLineNumber() < 1000000 ? Math.max(f.getLineNumber(), 0) : 0).append('\t');
		}
		CHAINS.add(b.toString());
	}

	static long burn(int n) {
		long x = 0;

		if (noting || (++calls & EACH) == 0)
			note();
		for (int i = 0; i < n; i++)
			x += i * i % 7;
		return x;
	}

	/* Seconds of CPU time, of all threads. */
	static double used() throws IOException {
		byte[] b = new byte[1024];
		int n;

		if (noting)
			note();
		try (InputStream in = new FileInputStream("/proc/self/stat")) {
			n = in.read(b);
		}
		String text = new String(b, 0, n, "ISO-8859-1");
		String[] words = text.substring(text.lastIndexOf(')') + 2).split(" ");
		return (Long.parseLong(words[11]) + Long.parseLong(words[12])) / 100.0;
	}

	/* ---- scenarios ---- */

	static long down(int n) {
		if (n > 0)
			return down(n - 1) + 1;
		return burn(3000);
	}

	static long i0(int n) {
		long x = n & 3;
		x += i1(n + 1);
		return x;
	}

	static long i1(int n) {
		long x = n & 3;
		x += i2(n + 1);
		return x;
	}

	static long i2(int n) {
		long x = n & 3;
		x += i3(n + 1);
		return x;
	}

	static long i3(int n) {
		long x = n & 3;
		x += i4(n + 1);
		return x;
	}

	static long i4(int n) {
		long x = n & 3;
		x += i5(n + 1);
		return x;
	}

	static long i5(int n) {
		long x = n & 3;
		x += i6(n + 1);
		return x;
	}

	static long i6(int n) {
		long x = n & 3;
		x += i7(n + 1);
		return x;
	}

	static long i7(int n) {
		long x = n & 3;
		x += i8(n + 1);
		return x;
	}

	static long i8(int n) {
		long x = n & 3;
		x += i9(n + 1);
		return x;
	}

	static long i9(int n) {
		long x = n & 3;
		x += i10(n + 1);
		return x;
	}

	static long i10(int n) {
		long x = n & 3;
		x += i11(n + 1);
		return x;
	}

	static long i11(int n) {
		long x = n & 3;
		x += i12(n + 1);
		return x;
	}

	static long i12(int n) {
		long x = n & 3;
		x += i13(n + 1);
		return x;
	}

	static long i13(int n) {
		long x = n & 3;
		x += i14(n + 1);
		return x;
	}

	static long i14(int n) {
		long x = n & 3;
		x += i15(n + 1);
		return x;
	}

	static long i15(int n) {
		long x = n & 3;
		x += i16(n + 1);
		return x;
	}

	static long i16(int n) {
		long x = n & 3;
		x += i17(n + 1);
		return x;
	}

	static long i17(int n) {
		long x = n & 3;
		x += i18(n + 1);
		return x;
	}

	static long i18(int n) {
		long x = n & 3;
		x += i19(n + 1);
		return x;
	}

	static long i19(int n) {
		long x = n & 3;
		x += i20(n + 1);
		return x;
	}

	static long i20(int n) {
		return burn(200 + n % 3);
	}

	interface Shape {
		long area(int n);
	}

	static class Square implements Shape {
		public long area(int n) {
			return burn(n);
		}
	}

	static class Circle implements Shape {
		public long area(int n) {
			long x = burn(n);
			return x + burn(n + 1);
		}
	}

	static class Line implements Shape {
		public long area(int n) {
			return n + burn(n);
		}
	}

	static final Shape[] SHAPES = {new Square(), new Circle(), new Line()};

	static void shapes() {
		for (Shape s : SHAPES)
			sink += s.area(300);
	}

	static long apply(IntToLongFunction f) {
		return f.applyAsLong(300);
	}

	static void lambdas() {
		sink += apply(n -> burn(n));
		sink += apply(n -> burn(n) +
			burn(n + 1));
		sink += apply(Chains::burn);
	}

	static void streams() {
		sink += IntStream.range(0, 5)
			.mapToLong(n -> burn(100 + n))
			.filter(x -> burn(50) != x)
			.sum();
	}

	static int compare(Integer a, Integer b) {
		sink += burn(20);
		return a.compareTo(b);
	}

	static void sorting() {
		Integer[] all = new Integer[60];

		for (int i = 0; i < all.length; i++)
			all[i] = i * 37 % 61;
		Arrays.sort(all, Chains::compare);
	}

	static long made(Integer key) {
		return burn(100 + key);
	}

	static void computing() {
		Map<Integer, Long> map = new HashMap<>();

		for (int i = 0; i < 10; i++)
			sink += map.computeIfAbsent(i, Chains::made);
	}

	public static long reflected(int n) {
		return burn(n);
	}

	static void reflecting() throws Exception {
		sink += (Long) Chains.class.getMethod("reflected", int.class).invoke(null, 300);
	}

	static void raising(int n) {
		sink += burn(60);
		if (n == 0)
			throw new IllegalStateException();
		raising(n - 1);
		sink++;
	}

	static void exceptions() {
		try {
			raising(5);
		} catch (IllegalStateException e) {
			sink += burn(60);
		}
	}

	static synchronized void locked() {
		sink += burn(100);
	}

	static void locking() {
		locked();
		synchronized (SHAPES) {
			sink += burn(100);
		}
	}

	static void garbage() {
		byte[][] kept = new byte[64][];

		for (int i = 0; i < 500; i++)
			kept[i & 63] = new byte[(int) burn(10) + 2000];
		sink += kept[5].length;
	}

	static void beside(double end) {
		try {
			do {
				down(20);
				i0(1);
				besides = true;
			} while (used() < end);
		} catch (IOException e) {
			throw new Error(e);
		}
	}

	static void threads(double end) throws Exception {
		Thread other = new Thread(() -> beside(end), "beside");
		int rounds = 0;

		noting = true;
		other.start();
		do {
			noting = !besides || rounds++ < 3;
			for (int i = 0; i < 100; i++)
				shapes();
		} while (used() < end);
		other.join();
	}

	/* ---- the program ---- */

	static final String[] SCENARIOS = {"recursion40", "recursion400", "inlined20", "shapes", "lambdas",
		"streams", "sorting", "computing", "reflecting", "exceptions", "locking", "garbage"};

	static void once(int scenario) throws Exception {
		switch (scenario) {
		case 0: sink += down(40); break;
		case 1: sink += down(400); break;
		case 2: sink += i0(1); break;
		case 3: shapes(); break;
		case 4: lambdas(); break;
		case 5: streams(); break;
		case 6: sorting(); break;
		case 7: computing(); break;
		case 8: reflecting(); break;
		case 9: exceptions(); break;
		case 10: locking(); break;
		default: garbage(); break;
		}
	}

	static void run(int scenario, double end) throws Exception {
		long next = 0;

		for (int i = 0;; i++) {
			noting = i < 3;
			once(scenario);
			if (!noting && System.nanoTime() < next)
				continue;
			if (used() >= end)
				break;
			next = System.nanoTime() + 5000000;
		}
	}

	public static void main(String[] args) throws Exception {
		double part = Double.parseDouble(args[0]) / (SCENARIOS.length + 1), begun;
		String gate = System.getenv("BURN_GATE");

		if (gate != null)
			try (InputStream in = new FileInputStream(gate)) {
				in.read();
			}
		begun = used();
		for (int i = 0; i < SCENARIOS.length; i++)
			run(i, begun + part * (i + 1));
		threads(begun + part * (SCENARIOS.length + 1));
		StringBuilder b = new StringBuilder();
		for (String chain : CHAINS)
			b.append(chain).append('\n');
		System.out.print(b);
	}
}
