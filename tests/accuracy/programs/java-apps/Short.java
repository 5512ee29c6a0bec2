// SPDX-License-Identifier: Apache-2.0
// A program that is over after some 300 ms of CPU time, most of which the JVM needs to start.
import java.util.Map;
import java.util.TreeMap;

public class Short {
	static long work(int n) {
		StringBuilder b = new StringBuilder();
		long sum = 0;
		for (int i = 0; i < n; i++) {
			b.append(i % 10);
			if (b.length() > 1000) {
				sum += b.toString().hashCode();
				b.setLength(0);
			}
		}
		return sum;
	}

	public static void main(String[] args) {
		Map<String, Long> all = new TreeMap<>();
		for (int i = 0; i < 20; i++)
			all.merge("k" + i % 7, work(200000), Long::sum);
		System.out.println(all);
	}
}
