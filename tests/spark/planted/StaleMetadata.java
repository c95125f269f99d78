// SPDX-FileCopyrightText: 2026 Quorumshift contributors
// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

import java.io.File;
import org.apache.log4j.spi.Filter;
import org.apache.log4j.spi.LoggingEvent;

/**
 * A filter of the log that makes a broker's metadata stale: while the file `when` exists, the thread that publishes new metadata waits
 * here, at its message before it publishes. The broker serves clients, fetches the metadata log and sends its heartbeats as before.
 */
public class StaleMetadata extends Filter {
    private File when;

    public void setWhen(String path) {
        when = new File(path);
    }

    @Override
    public int decide(LoggingEvent event) {
        while (when.exists()) {
            try {
                Thread.sleep(100);
            } catch (InterruptedException error) {
                throw new IllegalStateException(error);
            }
        }
        return Filter.DENY;
    }
}
