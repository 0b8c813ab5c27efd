// What the embedded chat needs only at times: ratings of answers, a record that is opened, calls that go on in the background,
// a block.

import { BlockView } from '../page/block-view.js';
import { rateAnswer } from '../page/chat-requests.js';
import '../page/message-actions.js';
import { RecordPanel } from '../page/record-panel.js';
import { Tasks } from '../page/tasks.js';

export const parts = { BlockView, RecordPanel, Tasks, rateAnswer };
