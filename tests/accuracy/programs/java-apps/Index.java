// SPDX-License-Identifier: Apache-2.0
// Lucene: indexes made-up documents in memory and searches them, for the seconds of CPU time given.
import java.lang.management.ManagementFactory;
import java.util.Random;
import org.apache.lucene.analysis.standard.StandardAnalyzer;
import org.apache.lucene.document.Document;
import org.apache.lucene.document.Field;
import org.apache.lucene.document.StringField;
import org.apache.lucene.document.TextField;
import org.apache.lucene.index.DirectoryReader;
import org.apache.lucene.index.IndexWriter;
import org.apache.lucene.index.IndexWriterConfig;
import org.apache.lucene.index.Term;
import org.apache.lucene.search.BooleanClause;
import org.apache.lucene.search.BooleanQuery;
import org.apache.lucene.search.IndexSearcher;
import org.apache.lucene.search.TermQuery;
import org.apache.lucene.store.ByteBuffersDirectory;

public class Index {
	static final Random random = new Random(1);

	static String word() {
		return "word" + (int) Math.abs(random.nextGaussian() * 3000);
	}

	static String text() {
		StringBuilder b = new StringBuilder();
		for (int i = 0; i < 120; i++)
			b.append(word()).append(i % 12 == 11 ? ". " : " ");
		return b.toString();
	}

	static long now() {
		return ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime();
	}

	public static void main(String[] args) throws Exception {
		long end = now() + (long) (Double.parseDouble(args[0]) * 1e9), found = 0;
		while (now() < end) {
			ByteBuffersDirectory directory = new ByteBuffersDirectory();
			try (IndexWriter writer = new IndexWriter(directory, new IndexWriterConfig(new StandardAnalyzer()))) {
				for (int i = 0; i < 3000 && now() < end; i++) {
					Document d = new Document();
					d.add(new StringField("id", "" + i, Field.Store.YES));
					d.add(new TextField("text", text(), Field.Store.NO));
					writer.addDocument(d);
				}
			}
			try (DirectoryReader reader = DirectoryReader.open(directory)) {
				IndexSearcher searcher = new IndexSearcher(reader);
				for (int i = 0; i < 2000 && now() < end; i++)
					found += searcher.search(new BooleanQuery.Builder()
						.add(new TermQuery(new Term("text", word())), BooleanClause.Occur.SHOULD)
						.add(new TermQuery(new Term("text", word())), BooleanClause.Occur.SHOULD)
						.build(), 10).scoreDocs.length;
			}
		}
		System.out.println(found);
	}
}
