import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.format.DateTimeFormatter;
import java.time.format.DateTimeParseException;

/** Reads lines of a pattern, a tab and a text; prints whether Java reads the text by the pattern, or "invalid". */
public class TimeFormats {
    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] fields = line.split("\t", -1);
            System.out.println(outcome(fields[0], fields[1]));
        }
    }

    private static String outcome(String pattern, String text) {
        try {
            DateTimeFormatter.ofPattern(pattern).parse(text);
            return "true";
        } catch (DateTimeParseException error) {
            return "false";
        } catch (IllegalArgumentException error) {
            return "invalid";
        }
    }
}
