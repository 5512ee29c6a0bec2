// SPDX-License-Identifier: Apache-2.0
// Jackson: writes and reads objects and trees, for the seconds of CPU time given.
import java.lang.management.ManagementFactory;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

public class Json {
	public static class Item {
		public String name;
		public long count;
		public double price;
		public boolean here;
		public Map<String, String> labels = new TreeMap<>();
		public List<Item> parts = new ArrayList<>();
	}

	static Item make(int n, int depth) {
		Item item = new Item();
		item.name = "item \u00e9 " + n;
		item.count = 1L << (n % 60);
		item.price = n / 7.0;
		item.here = n % 2 == 0;
		for (int i = 0; i < 4; i++)
			item.labels.put("label" + i, "value " + n * i);
		for (int i = 0; depth > 0 && i < 5; i++)
			item.parts.add(make(n * 5 + i, depth - 1));
		return item;
	}

	static long now() {
		return ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime();
	}

	public static void main(String[] args) throws Exception {
		long end = now() + (long) (Double.parseDouble(args[0]) * 1e9), sum = 0;
		ObjectMapper mapper = new ObjectMapper();
		for (int n = 0; now() < end; n++) {
			String text = mapper.writeValueAsString(make(n % 100, 3));
			sum += mapper.readValue(text, Item.class).parts.size();
			JsonNode tree = mapper.readTree(text);
			sum += mapper.writerWithDefaultPrettyPrinter().writeValueAsString(tree).length();
		}
		System.out.println(sum);
	}
}
