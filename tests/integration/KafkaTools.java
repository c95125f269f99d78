// SPDX-FileCopyrightText: 2026 Quorumshift contributors
// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.InvocationTargetException;
import java.util.Arrays;
import org.apache.kafka.common.utils.Exit;

/** Runs Kafka's command line tools in one JVM: each line of stdin is a class and its arguments, separated by tabs. */
public class KafkaTools {
    /** The code of a tool's first exit: some tools catch the exception and exit again. */
    private static Integer exitCode;

    public static void main(String[] none) throws Exception {
        Exit.setExitProcedure((code, message) -> {
            if (exitCode == null) {
                exitCode = code;
            }
            throw new IllegalStateException("exit " + code);
        });
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split("\t");
            String[] arguments = Arrays.copyOfRange(words, 1, words.length);
            exitCode = null;
            InvocationTargetException thrown = null;
            try {
                Class.forName(words[0]).getMethod("main", String[].class).invoke(null, (Object) arguments);
            } catch (InvocationTargetException e) {
                thrown = e;
            }
            if (exitCode == null ? thrown != null : exitCode != 0) {
                System.err.println("failed: " + line);
                if (thrown != null) {
                    thrown.printStackTrace();
                }
                System.exit(1);
            }
        }
        System.exit(0);
    }
}
