// SPDX-FileCopyrightText: 2026 Quorumshift contributors
// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Paths;
import org.apache.log4j.spi.Filter;
import org.apache.log4j.spi.LoggingEvent;

/**
 * A filter of the log that makes a broker load its partitions slowly, as thousands of large ones do: LogManager reports each loaded
 * partition, and waits here. The file `slow.loading` has the pause in ms, and the number of the partition at which the broker hangs.
 */
public class SlowLoading extends Filter {
    private int loaded = 0;

    @Override
    public int decide(LoggingEvent event) {
        if (event.getRenderedMessage().startsWith("Completed load of ")) {
            loaded += 1;
            try {
                String[] given = Files.readString(Paths.get(System.getProperty("slow.loading"))).trim().split(" ");
                Thread.sleep(loaded == Integer.parseInt(given[1]) ? Long.MAX_VALUE : Long.parseLong(given[0]));
            } catch (IOException | InterruptedException error) {
                throw new IllegalStateException(error);
            }
        }
        return Filter.NEUTRAL;
    }
}
